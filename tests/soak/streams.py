"""Bytes through many pairs at once, and whether they are those that were sent."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Sequence

QUIET = 1.0
"""Seconds in which nobody takes a byte: all buffers on the way are full."""

PATIENCE = 20.0
"""Seconds in which no byte comes: none will."""


class Block:
    """Whole frames, sent again and again."""

    def __init__(self, frame: bytes, at_least: int = 256 * 1024) -> None:
        self.size = len(frame) * -(-at_least // len(frame))
        self._twice = memoryview(frame * (2 * self.size // len(frame)))

    def at(self, offset: int, size: int) -> memoryview:
        """A part of all that is sent, not larger than the block."""
        start = offset % self.size
        return self._twice[start : start + min(size, self.size)]


class Stream:
    """One direction of one pair. `blocks`: how many are sent."""

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
        """Send what is taken; answers whether there is more to send."""
        try:
            part = self._block.at(self.sent, self.total - self.sent)
            self.sent += self.writer.send(part)
        except BlockingIOError:
            pass
        except OSError:
            self.broken = True
        return self.sent < self.total and not self.broken

    def read(self) -> bool:
        """Receive what has come; answers whether there is more to come."""
        try:
            data = self.reader.recv(self._block.size)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        self.broken |= not data
        assert data == self._block.at(self.received, len(data)), "other bytes than were sent"
        self.received += len(data)
        return not self.complete and not self.broken


def fill(streams: Sequence[Stream]) -> None:
    """Write until nobody takes more. Nobody reads."""
    with selectors.EpollSelector() as selector:
        for stream in streams:
            selector.register(stream.writer, selectors.EVENT_WRITE, stream)
        while selector.get_map() and (ready := selector.select(QUIET)):
            for key, _ in ready:
                if not key.data.write():
                    selector.unregister(key.fileobj)


def drain(streams: Sequence[Stream]) -> None:
    """Write what is left, and read, until all has come or nothing does any more."""
    with selectors.EpollSelector() as selector:
        for stream in streams:
            if stream.sent < stream.total:
                selector.register(stream.writer, selectors.EVENT_WRITE, stream.write)
            selector.register(stream.reader, selectors.EVENT_READ, stream.read)
        while selector.get_map() and (ready := selector.select(PATIENCE)):
            for key, _ in ready:
                if not key.data():
                    selector.unregister(key.fileobj)
