"""Bytes through many pairs at once, compared with those that were sent."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Sequence

QUIET = 1.0
"""Seconds in which no reader or socket takes a byte: all buffers on the way are full."""

PATIENCE = 20.0
"""Seconds without a byte after which none is expected."""


class Block:
    """Whole frames, sent repeatedly."""

    def __init__(self, frame: bytes, at_least: int = 256 * 1024) -> None:
        self.size = len(frame) * -(-at_least // len(frame))
        self._twice = memoryview(frame * (2 * self.size // len(frame)))

    def at(self, offset: int, size: int) -> memoryview:
        """Return a part of the sent bytes, no larger than the block."""
        start = offset % self.size
        return self._twice[start : start + min(size, self.size)]


class Stream:
    """One direction of one pair. `blocks`: the number of blocks to send."""

    def __init__(
        self, writer: socket.socket, reader: socket.socket, block: Block, blocks: int
    ) -> None:
        self.writer, self.reader = writer, reader
        self._block = block
        self.total = blocks * block.size
        self.sent = self.received = 0
        self.broken = False
        for sock in (writer, reader):
            sock.setblocking(False)

    @property
    def complete(self) -> bool:
        return self.received == self.total

    def write(self) -> bool:
        """Send what the socket takes; return True if there is more to send."""
        try:
            part = self._block.at(self.sent, self.total - self.sent)
            self.sent += self.writer.send(part)
        except BlockingIOError:
            pass
        except OSError:
            self.broken = True
        return self.sent < self.total and not self.broken

    def read(self) -> bool:
        """Receive what has arrived; return True if there is more to come."""
        try:
            data = self.reader.recv(self._block.size)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        self.broken |= not data
        assert data == self._block.at(self.received, len(data)), (
            "the received bytes differ from those sent"
        )
        self.received += len(data)
        return not self.complete and not self.broken


def fill(streams: Sequence[Stream]) -> None:
    """Write until no socket takes more, without reading."""
    with selectors.EpollSelector() as selector:
        for stream in streams:
            selector.register(stream.writer, selectors.EVENT_WRITE, stream)
        while selector.get_map() and (ready := selector.select(QUIET)):
            for key, _ in ready:
                if not key.data.write():
                    selector.unregister(key.fileobj)


def drain(streams: Sequence[Stream]) -> None:
    """Write the rest, and read, until all has arrived or nothing arrives any more."""
    with selectors.EpollSelector() as selector:
        for stream in streams:
            if stream.sent < stream.total:
                selector.register(stream.writer, selectors.EVENT_WRITE, stream.write)
            selector.register(stream.reader, selectors.EVENT_READ, stream.read)
        while selector.get_map() and (ready := selector.select(PATIENCE)):
            for key, _ in ready:
                if not key.data():
                    selector.unregister(key.fileobj)
