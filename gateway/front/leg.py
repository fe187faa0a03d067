"""One peer's stream while a conversation uses it.

The peer is not authenticated yet, and there may be thousands of such peers. So a frame beyond some
kilobytes is read only with a claim on a share of memory, which all legs of the process have in
common (see `plane.share`). A leg without a claim waits for one until the conversation's deadline.
The claim lasts until the conversation ends, because the decoded frame does.

A leg uses the streams of the data plane, not trio's, because the data plane takes the same streams
over and opening a connection must stay cheap. For the same reason a leg makes a cancel scope only
if it must wait: the scope costs as much as all the rest. `readiness` wakes waiting legs, a few at a
time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import trio

from gateway.listening.flow import readable, writable
from gateway.listening.readiness import Readiness
from gateway.plane.share import UNCLAIMED, Claim, Share
from gateway.plane.stream import Stream, is_open, shut
from gateway.tls.handshake import readable as in_trio
from gateway.wire.contract import Denial, Refusal

CHUNK = 64 * 1024
"""The largest read, in bytes."""

LINGER = 1.0
"""Seconds that a refused peer has to read its farewell."""

Patience = Callable[[trio.CancelScope], AbstractContextManager[object]]
"""Called with the cancel scope of each wait for the peer; the result is entered during that
wait."""


def endless(_scope: trio.CancelScope) -> AbstractContextManager[object]:
    """Return a context that does nothing, so only the deadline ends a wait for the peer."""
    return nullcontext()


_CLOSED = Denial(Refusal.CLOSED, "the connection was closed")
_TOO_SLOW = Denial(Refusal.TIMEOUT, "the handshake took too long")


class Leg:
    """Receives frames from one peer, and sends bytes to it, during a conversation. `bound`: bytes
    of the largest frame. `share`: memory for large frames; None: unlimited. `host`: the peer's
    address, which has a part of `share`. `readiness`: wakes waiting legs in turn; None: trio wakes
    this leg. `patience`: called for each wait for the peer; it may cancel the wait before the
    deadline.

    `received`: bytes that came behind the last frame, at most as many as a small frame has.
    """

    __slots__ = (
        "_bound",
        "_claim",
        "_frame_length",
        "_host",
        "_readiness",
        "_share",
        "patience",
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
        patience: Patience = endless,
    ) -> None:
        self.stream = stream
        self.received = bytearray()
        self._frame_length = frame_length
        self._bound = bound
        self._share = share
        self._host = host
        self._claim: Claim | None = None
        self._readiness = readiness
        self.patience = patience

    async def receive(self, deadline: float) -> bytes | Denial:
        """Return the next frame; a denial if the frame is too large or too late, or if the stream
        ended. `deadline`: by trio's clock."""
        # While many legs wait, this one waits before its first read too: handling a frame is work
        # that each leg may do in its turn only.
        waits = self._is_crowded
        while True:
            length = self._frame_length(self.received)
            if length > self._bound:
                return Denial(
                    Refusal.TOO_MANY, f"a frame of {length} bytes before the connection is open"
                )
            if length and len(self.received) >= length:
                frame = bytes(self.received[:length])
                del self.received[:length]
                return frame
            if length > UNCLAIMED and not await self._has_room(length, deadline):
                return _TOO_SLOW
            most = max(length, UNCLAIMED) - len(self.received)
            gone = await self._receive_more(most, deadline, waits=waits)
            if gone is not None:
                return gone
            waits = False

    async def peek(self, count: int, deadline: float) -> bytes | Denial:
        """Return the next `count` bytes and leave them unread; a denial if they come too late, or
        if the stream ended. `count`: at most `UNCLAIMED`."""
        waits = self._is_crowded
        while len(self.received) < count:
            most = UNCLAIMED - len(self.received)
            gone = await self._receive_more(most, deadline, waits=waits)
            if gone is not None:
                return gone
            waits = False
        return bytes(self.received[:count])

    @property
    def _is_crowded(self) -> bool:
        return self._readiness is not None and self._readiness.crowded

    async def _receive_more(self, most: int, deadline: float, *, waits: bool) -> Denial | None:
        """Receive some bytes, at most `most`; return a denial if none come. `waits`: for its turn,
        before it reads."""
        more = None if waits else self._read(most)
        while more is None:
            with trio.CancelScope(deadline=deadline) as scope, self.patience(scope):
                await self._readable()
            if scope.cancelled_caught:
                return _TOO_SLOW
            more = self._read(most)
        return None if more else _CLOSED

    async def _readable(self) -> None:
        """Wait until `recv` may return bytes."""
        ready = self._readiness
        await readable(self.stream, in_trio if ready is None else ready.readable)

    async def wait_turn(self) -> None:
        """Wait, if many connections were made at the same time, until this new connection may
        continue."""
        if self._readiness is not None:
            await self._readiness.connected(self.stream)

    async def _has_room(self, length: int, deadline: float) -> bool:
        """Claim memory for a frame of this length; return whether it was granted in time."""
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
        """Release the memory claimed for large frames, because the conversation is over."""
        if self._share is not None and self._claim is not None:
            self._share.release(self._claim)
            self._claim = None

    def _read(self, most: int) -> bool | None:
        """Return whether bytes came; False: the stream has ended; None: nothing came yet."""
        try:
            chunk = self.stream.recv(min(most, CHUNK))
        except BlockingIOError:
            return None
        except OSError:
            return False
        self.received += chunk
        return bool(chunk)

    def is_alive(self) -> bool:
        """Return whether the connection is open: False if the kernel knows that the peer has closed
        it."""
        return is_open(self.stream)

    async def transmit(self, data: bytes, deadline: float) -> None:
        """Send all bytes, or as many as the peer takes before `deadline`. If the peer has closed
        the connection, the next `receive` reports that."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.stream.send(rest) :]
            except BlockingIOError:
                with trio.CancelScope(deadline=deadline) as scope:
                    await writable(self.stream)
                if scope.cancelled_caught:
                    return
            except OSError:
                return

    async def close_with(self, farewell: bytes) -> None:
        """Send `farewell`, wait until the peer closes the connection, at most `LINGER` seconds, and
        close it. Closing without the wait may cause a reset, which can overtake the farewell."""
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
                else:  # a peer that sends without end must not stop other tasks
                    await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the connection at once."""
        self.release()
        self.stream.close()
