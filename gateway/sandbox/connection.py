"""One connection of a client: reads frames for a session, writes what it answers.

Two tasks. What waits to be written is bounded twice: with more than `MOST_UNSENT` bytes waiting no
message is dispatched to it, and nothing is read from it. A client that sends requests and takes no
answers fills its own socket, not our memory.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import trio

from gateway.errors import PeerError
from gateway.sandbox import faults
from gateway.sandbox.handlers import HANDLERS
from gateway.sandbox.opening import LARGEST_MESSAGE
from gateway.sandbox.session import Place, Session
from gateway.wire.pulsar.frames import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_UNSENT = 1024 * 1024
"""Bytes. Enough to keep a socket busy; the largest message comes on top of it."""

LARGEST_FRAME = LARGEST_MESSAGE + 64 * 1024
"""Bytes: a message, its metadata and command."""

CHUNK = 64 * 1024
"""Bytes of one read, and (about) of one write: what is handled before others have their turn."""

GLANCE = 0.02
"""Seconds between two looks at a fault that holds us up: it may be lifted, which no event tells."""

PATIENCE = 1.0
"""Seconds for the last words to a client that is sent away."""

_SIZE = 4


class Connection:
    """`run` serves it to its end; whoever cancels that closes it."""

    def __init__(self, stream: trio.SocketStream, place: Place) -> None:
        self._stream = stream
        self._faults = place.faults
        self._session = Session(place, self._send, lambda: self._unsent > MOST_UNSENT, HANDLERS)
        # Frames, and since when they wait.
        self._frames: deque[tuple[float, bytes]] = deque()
        self._unsent = 0
        self._changed = trio.lowlevel.ParkingLot()
        self._lies = place.faults.lies

    async def run(self) -> None:
        """Serve until either side ends it. Raises groups of `PeerError`s and of trio's errors."""
        try:
            async with self._stream, trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                await self._read()
                with trio.move_on_after(PATIENCE):
                    await self._wait_for_room(0)
                nursery.cancel_scope.cancel()
        finally:
            self._session.close()

    def say(self, frame: bytes) -> None:
        """Send a frame out of the blue, if the client has come in."""
        if self._session.is_open:
            self._send(frame)

    # -- reading ---------------------------------------------------------------------------------

    async def _read(self) -> None:
        received = bytearray()
        while not self._session.is_ended:
            await self._wait_for_room(MOST_UNSENT)
            await self._thaw()
            chunk = await self._stream.receive_some(CHUNK)
            if not chunk:
                return
            received += chunk
            await self._thaw()
            for frame in _take_frames(received):
                self._session.receive(frame, time.time())

    # -- writing ---------------------------------------------------------------------------------

    def _send(self, frame: bytes) -> None:
        self._frames.append((trio.current_time(), frame))
        self._unsent += len(frame)
        self._changed.unpark_all()

    async def _write(self) -> None:
        while True:
            while not self._frames:
                await self._changed.park()
            while self._is_frozen() or not self._is_due():  # noqa: ASYNC110 - see GLANCE
                await trio.sleep(GLANCE)
            data = b"".join(self._due())
            await self._stream.send_all(data)
            self._sent(len(data))

    def _due(self) -> Iterator[bytes]:
        """About a chunk of what may go out now."""
        size = 0
        while self._frames and size < CHUNK and self._is_due():
            _, frame = self._frames.popleft()
            size += len(frame)
            yield self._perhaps_lie(frame)

    def _is_due(self) -> bool:
        return self._frames[0][0] + self._faults.delay <= trio.current_time()

    def _perhaps_lie(self, frame: bytes) -> bytes:
        if self._lies == self._faults.lies:
            return frame
        self._lies = self._faults.lies
        return faults.lie(frame)

    def _sent(self, size: int) -> None:
        was_congested = self._session.is_congested
        self._unsent -= size
        if was_congested and not self._session.is_congested:
            self._session.resume()
        self._changed.unpark_all()

    # -- waiting ---------------------------------------------------------------------------------

    async def _wait_for_room(self, most: int) -> None:
        """Until no more bytes than that are unsent."""
        while self._unsent > most:
            await self._changed.park()

    async def _thaw(self) -> None:
        while self._is_frozen():  # noqa: ASYNC110 - see GLANCE
            await trio.sleep(GLANCE)

    def _is_frozen(self) -> bool:
        return time.time() < self._faults.frozen_until


def _take_frames(received: bytearray) -> Iterator[bytes]:
    """Whole frames from the front, which is removed. Raises `PeerError` for one too large."""
    start = 0
    try:
        while len(received) - start >= _SIZE:
            size = int.from_bytes(received[start : start + _SIZE], "big")
            if size > LARGEST_FRAME or size < HEAD.size - _SIZE:
                raise PeerError(f"a frame of {size} bytes")
            end = start + _SIZE + size
            if end > len(received):
                return
            yield bytes(received[start:end])
            start = end
    finally:
        del received[:start]
