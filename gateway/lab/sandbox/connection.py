"""One client connection: passes received frames to a session and sends the session's frames.

A connection has two tasks. While more than `MOST_UNSENT` bytes wait to be sent, no message is
dispatched to the client and nothing is received from it. A client that sends requests and reads no
responses thus fills its own socket, not the sandbox's memory.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import trio

from gateway.errors import PeerError
from gateway.lab.sandbox import consuming, faults, lookups, opening, producing
from gateway.lab.sandbox.opening import LARGEST_MESSAGE
from gateway.lab.sandbox.session import BrokerContext, BrokerSession
from gateway.wire.pulsar.frames import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.lab.sandbox.session import Handler

HANDLERS: Mapping[int, Handler] = {
    **opening.HANDLERS,
    **lookups.HANDLERS,
    **producing.HANDLERS,
    **consuming.HANDLERS,
}

MOST_UNSENT = 1024 * 1024
"""Bytes. Enough to keep a socket busy; the largest message may come on top."""

LARGEST_FRAME = LARGEST_MESSAGE + 64 * 1024
"""Bytes: a message, its metadata and command."""

CHUNK = 64 * 1024
"""Bytes of one read, and (about) of one write, before other tasks get their turn."""

POLL_SECONDS = 0.02
"""Seconds between two checks of a fault that blocks: no event tells when it is lifted."""

FLUSH_SECONDS = 1.0
"""Seconds to send the last frames to a client whose connection the broker closes."""

_SIZE = 4


class BrokerConnection:
    """One client's connection to a broker. `run` serves it to its end; cancelling `run` closes
    it."""

    def __init__(self, stream: trio.SocketStream, context: BrokerContext) -> None:
        self._stream = stream
        self._faults = context.faults
        self._session = BrokerSession(
            context, self._send, lambda: self._unsent > MOST_UNSENT, HANDLERS
        )
        # The unsent frames, each with the time from which it waits.
        self._frames: deque[tuple[float, bytes]] = deque()
        self._unsent = 0
        self._changed = trio.lowlevel.ParkingLot()
        self._lies = context.faults.lies

    async def run(self) -> None:
        """Serve the connection until either side closes it. Raises groups of `PeerError`s and of
        trio's errors."""
        try:
            async with self._stream, trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                await self._read()
                with trio.move_on_after(FLUSH_SECONDS):
                    await self._wait_for_room(0)
                nursery.cancel_scope.cancel()
        finally:
            self._session.close()

    def announce(self, frame: bytes) -> None:
        """Send a frame that the client did not request. If the client has not completed CONNECT,
        nothing is sent."""
        if self._session.is_open:
            self._send(frame)

    # -- reading ---------------------------------------------------------------------------------

    async def _read(self) -> None:
        received = bytearray()
        while not self._session.is_ended:
            await self._wait_for_room(MOST_UNSENT)
            await self._wait_while_frozen()
            chunk = await self._stream.receive_some(CHUNK)
            if not chunk:
                return
            received += chunk
            await self._wait_while_frozen()
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
            while self._is_frozen() or not self._is_due():  # noqa: ASYNC110 - see POLL_SECONDS
                await trio.sleep(POLL_SECONDS)
            data = b"".join(self._due())
            await self._stream.send_all(data)
            self._sent(len(data))

    def _due(self) -> Iterator[bytes]:
        """Yield about one chunk of frames that may be sent now."""
        size = 0
        while self._frames and size < CHUNK and self._is_due():
            _, frame = self._frames.popleft()
            size += len(frame)
            yield self._apply_lie(frame)

    def _is_due(self) -> bool:
        return self._frames[0][0] + self._faults.delay <= trio.current_time()

    def _apply_lie(self, frame: bytes) -> bytes:
        if self._lies == self._faults.lies:
            return frame
        self._lies = self._faults.lies
        return faults.falsify_size(frame)

    def _sent(self, size: int) -> None:
        was_congested = self._session.is_congested
        self._unsent -= size
        if was_congested and not self._session.is_congested:
            self._session.resume()
        self._changed.unpark_all()

    # -- waiting ---------------------------------------------------------------------------------

    async def _wait_for_room(self, most: int) -> None:
        """Wait until at most `most` bytes are unsent."""
        while self._unsent > most:
            await self._changed.park()

    async def _wait_while_frozen(self) -> None:
        while self._is_frozen():  # noqa: ASYNC110 - see POLL_SECONDS
            await trio.sleep(POLL_SECONDS)

    def _is_frozen(self) -> bool:
        return time.time() < self._faults.frozen_until


def _take_frames(received: bytearray) -> Iterator[bytes]:
    """Remove whole frames from the front and yield them. Raises `PeerError` for one too large."""
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
