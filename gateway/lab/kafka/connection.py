"""One client connection: passes received frames to a session and sends the session's responses.

As in brokers, one task takes the next request of a connection when the response to the last one is
sent, so a client that reads no responses fills its own socket.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gateway.errors import PeerError
from gateway.lab.kafka import (
    administering,
    committing,
    fetching,
    grouping,
    metadata,
    opening,
    producing,
)
from gateway.wire.kafka.frames import SIZE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import trio

    from gateway.lab.kafka.session import Handler, KafkaSession

HANDLERS: Mapping[int, Handler] = {
    **opening.HANDLERS,
    **metadata.HANDLERS,
    **producing.HANDLERS,
    **fetching.HANDLERS,
    **grouping.HANDLERS,
    **committing.HANDLERS,
    **administering.HANDLERS,
}

LARGEST_FRAME = 8 * 1024 * 1024
"""Bytes. A client's largest request has 1 MiB by default, and some 5 where that was raised."""

CHUNK = 64 * 1024
"""Bytes of one read."""


async def serve(stream: trio.SocketStream, session: KafkaSession) -> None:
    """Serve a client's connection until either side closes it. Raises `PeerError` and trio's
    errors."""
    async with stream:
        async for frame in _frames(stream):
            response = await session.answer(frame, time.time())
            if response is not None:
                await stream.send_all(response)
            if session.is_ended:
                return


async def _frames(stream: trio.SocketStream) -> AsyncIterator[bytes]:
    """Yield whole frames, each with its size. Raises `PeerError` for one too large."""
    received = bytearray()
    while chunk := await stream.receive_some(CHUNK):
        received += chunk
        while len(received) >= SIZE.size:
            size = SIZE.unpack_from(received)[0]
            if not 0 <= size <= LARGEST_FRAME:
                raise PeerError(f"a frame of {size} bytes")
            end = SIZE.size + size
            if end > len(received):
                break
            frame = bytes(received[:end])
            del received[:end]
            yield frame
