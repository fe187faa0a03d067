"""One stream while a conversation speaks on it.

Nobody knows yet who the peer is, and there may be thousands of them. So a frame beyond some
kilobytes is read only with a claim on a share of memory, which all legs of the process have
together (see `plane.share`). Who finds no room waits, within the deadline of the conversation.
The claim lasts until the conversation is over, as what was decoded of the frame does.

Streams of the data plane, without trio's, and with a cancel scope only where there is something to
wait for: it costs as much as all the rest. Setting a connection up must stay cheap, and the data
plane takes the very same streams over. Who waits is woken by `readiness`, a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from gateway.front.readiness import Readiness
from gateway.plane.share import UNCLAIMED, Claim, Share
from gateway.plane.stream import IN, OUT, Stream, has_records, is_open, shut
from gateway.wire.contract import Denial, Refusal

CHUNK = 64 * 1024
"""The most that one read takes."""

LINGER = 1.0
"""Seconds that a refused peer may take to read why."""

_CLOSED = Denial(Refusal.CLOSED, "the connection was closed")
_TOO_SLOW = Denial(Refusal.TIMEOUT, "the handshake took too long")


class Leg:
    """Frames in, bytes out. `bound`: the largest frame, in bytes. `share`: room for large ones,
    None where nobody else wants any; `host`: of the peer, which may have a part of it.
    `readiness`: what wakes it; None where nobody else is served meanwhile.

    What comes behind the last frame is in `received`: no more than small frames are.
    """

    __slots__ = (
        "_bound",
        "_claim",
        "_frame_length",
        "_host",
        "_readiness",
        "_share",
        "received",
        "stream",
    )

    def __init__(
        self,
        stream: Stream,
        frame_length: Callable[[bytearray], int],
        bound: int,
        share: Share | None = None,
        host: str = "",
        readiness: Readiness | None = None,
    ) -> None:
        self.stream = stream
        self.received = bytearray()
        self._frame_length = frame_length
        self._bound = bound
        self._share = share
        self._host = host
        self._claim: Claim | None = None
        self._readiness = readiness

    async def receive(self, deadline: float) -> bytes | Denial:
        """The next frame; at the latest at `deadline`, of trio's clock."""
        # Who comes while many wait does so too: what follows is work, for which each has its turn.
        ready = self._readiness is None or not self._readiness.crowded
        while True:
            length = self._frame_length(self.received)
            if length > self._bound:
                return Denial(
                    Refusal.TOO_MANY, f"a frame of {length} bytes before the connection is open"
                )
            if length and len(self.received) >= length:
                return self._take(length)
            if length > UNCLAIMED and not await self._has_room(length, deadline):
                return _TOO_SLOW
            more = self._read(max(length, UNCLAIMED) - len(self.received)) if ready else None
            if more is None:
                with trio.CancelScope(deadline=deadline) as scope:
                    await self._readable()
                if scope.cancelled_caught:
                    return _TOO_SLOW
                ready = True
            elif not more:
                return _CLOSED

    async def _readable(self) -> None:
        """Wait until receiving may bring something."""
        if has_records(self.stream) and self.stream.buffered:
            await trio.lowlevel.checkpoint()
        elif has_records(self.stream) and self.stream.receives_on == OUT:
            await trio.lowlevel.wait_writable(self.stream.fileno())
        elif self._readiness is None:
            await trio.lowlevel.wait_readable(self.stream.fileno())
        else:
            await self._readiness.readable(self.stream)

    async def _writable(self) -> None:
        """Wait until sending may take something."""
        if has_records(self.stream) and self.stream.sends_on == IN:
            await trio.lowlevel.wait_readable(self.stream.fileno())
        else:
            await trio.lowlevel.wait_writable(self.stream.fileno())

    async def turn(self) -> None:
        """Wait until it is the turn of this peer, which was just connected to."""
        if self._readiness is not None:
            await self._readiness.connected(self.stream)

    def _take(self, length: int) -> bytes:
        frame = bytes(self.received[:length])
        del self.received[:length]
        return frame

    async def _has_room(self, length: int, deadline: float) -> bool:
        """Whether there is a claim for a frame of this length, by the deadline."""
        if self._share is None or (self._claim is not None and self._claim.size >= length):
            return True
        self.release()
        granted = trio.Event()
        self._claim = self._share.claim(self._host, length, granted.set)
        if not self._claim.granted:
            with trio.CancelScope(deadline=deadline):
                await granted.wait()
        return self._claim.granted

    def release(self) -> None:
        """The conversation is over: its large frames need no room any more."""
        if self._share is not None and self._claim is not None:
            self._share.release(self._claim)
            self._claim = None

    def _read(self, most: int) -> bool | None:
        """Whether bytes came; None: not yet."""
        try:
            chunk = self.stream.recv(min(most, CHUNK))
        except BlockingIOError:
            return None
        except OSError:
            return False
        self.received += chunk
        return bool(chunk)

    def is_alive(self) -> bool:
        """Return whether the peer has not closed, as far as the kernel knows."""
        return is_open(self.stream)

    async def transmit(self, data: bytes, deadline: float) -> None:
        """Send all, or as much as the peer takes until `deadline`. A peer that is gone is noticed
        at the next receive."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.stream.send(rest) :]
            except BlockingIOError:
                with trio.CancelScope(deadline=deadline) as scope:
                    await self._writable()
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
        shut(self.stream)
        with trio.CancelScope(deadline=deadline):
            while (more := self._read(CHUNK)) is not False:
                self.received.clear()
                if more is None:
                    await self._readable()
                else:  # one that talks without end must not keep the process from its other work
                    await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """At once."""
        self.release()
        self.stream.close()
