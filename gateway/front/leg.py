"""One socket while a conversation speaks on it.

Plain sockets and trio's waiting, without a stream object, and with a cancel scope only where there
is something to wait for: it costs as much as all the rest. Setting a connection up must stay cheap,
and the data plane takes the very same sockets over.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import trio

from gateway.wire.contract import Denial, Refusal

CHUNK = 64 * 1024
"""One read. What comes behind the opening's last frame goes to the plane, which has room for it."""

LINGER = 1.0
"""Seconds that a refused peer may take to read why."""

_CLOSED = Denial(Refusal.CLOSED, "the connection was closed")
_TOO_SLOW = Denial(Refusal.TIMEOUT, "the handshake took too long")


class Leg:
    """Frames in, bytes out. `bound`: the largest frame, in bytes."""

    __slots__ = ("_bound", "_frame_length", "received", "sock")

    def __init__(
        self, sock: socket.socket, frame_length: Callable[[bytearray], int], bound: int
    ) -> None:
        self.sock = sock
        self.received = bytearray()
        self._frame_length = frame_length
        self._bound = bound

    async def receive(self, deadline: float) -> bytes | Denial:
        """The next frame; at the latest at `deadline`, of trio's clock."""
        while True:
            taken = self._take()
            if taken is not None:
                return taken
            more = self._read()
            if more is None:
                with trio.CancelScope(deadline=deadline) as scope:
                    await trio.lowlevel.wait_readable(self.sock)
                if scope.cancelled_caught:
                    return _TOO_SLOW
            elif not more:
                return _CLOSED

    def _take(self) -> bytes | Denial | None:
        """The frame that was received, if it is whole."""
        length = self._frame_length(self.received)
        if length > self._bound:
            return Denial(Refusal.TOO_MANY, f"a frame of {length} bytes before CONNECTED")
        if not length or len(self.received) < length:
            return None
        frame = bytes(self.received[:length])
        del self.received[:length]
        return frame

    def _read(self) -> bool | None:
        """Whether bytes came; None: not yet."""
        try:
            chunk = self.sock.recv(CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return False
        self.received += chunk
        return bool(chunk)

    def is_alive(self) -> bool:
        """Whether the peer has not closed, as far as the kernel knows."""
        try:
            return bool(self.sock.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    async def transmit(self, data: bytes, deadline: float) -> None:
        """Send all, or as much as the peer takes until `deadline`. A peer that is gone is noticed
        at the next receive."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.sock.send(rest) :]
            except BlockingIOError:
                with trio.CancelScope(deadline=deadline) as scope:
                    await trio.lowlevel.wait_writable(self.sock)
                if scope.cancelled_caught:
                    return
            except OSError:
                return

    async def part(self, farewell: bytes) -> None:
        """Say why, and close when that was read: a reset would overtake it."""
        try:
            if farewell:
                deadline = trio.current_time() + LINGER
                await self.transmit(farewell, deadline)
                await self._until_closed(deadline)
        finally:
            self.close()

    async def _until_closed(self, deadline: float) -> None:
        with contextlib.suppress(OSError), trio.CancelScope(deadline=deadline):
            self.sock.shutdown(socket.SHUT_WR)
            while (more := self._read()) is not False:
                self.received.clear()
                if more is None:
                    await trio.lowlevel.wait_readable(self.sock)
                else:  # one that talks without end must not keep the process from its other work
                    await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """At once."""
        self.sock.close()
