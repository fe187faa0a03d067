"""Kafka brokers on loopback that answer two requests, in the test's own event loop."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import trio

from gateway.wire.address import Address
from gateway.wire.kafka.addresses import FETCH, METADATA, PRODUCE
from gateway.wire.kafka.frames import API_VERSIONS

CURRENT = {PRODUCE: (0, 13), FETCH: (4, 18), METADATA: (0, 13), API_VERSIONS: (0, 4)}
"""Versions of Kafka 4."""

CONTROLLER = {FETCH: (4, 18), API_VERSIONS: (0, 4)}
"""What a controller knows of it."""

Told = Mapping[int, Address]


def framed(correlation: int, body: bytes) -> bytes:
    """Return an answer without tagged fields."""
    return struct.pack(">ii", len(body) + 4, correlation) + body


def versions(offered: Mapping[int, tuple[int, int]]) -> bytes:
    """Return an answer to ApiVersions 0."""
    ranges = b"".join(struct.pack(">hhh", key, *it) for key, it in offered.items())
    return framed(API_VERSIONS, struct.pack(">hi", 0, len(offered)) + ranges)


def metadata(told: Told) -> bytes:
    """Return an answer to Metadata 1, of no topics."""
    brokers = b"".join(
        struct.pack(">ih", id, len(it.host)) + it.host.encode() + struct.pack(">ih", it.port, -1)
        for id, it in told.items()
    )
    body = struct.pack(">i", len(told)) + brokers + struct.pack(">ii", 0, 0)
    return framed(METADATA, body)


@dataclass
class FakeKafka:
    """A script of a broker. `answers`: by API; it closes at a request that it has none for, as one
    does that wants SASL first. `asked`: the requests, by API and version."""

    answers: dict[int, bytes] = field(default_factory=lambda: {API_VERSIONS: versions(CURRENT)})
    asked: list[tuple[int, int]] = field(default_factory=list)

    def tell(self, told: Told) -> None:
        """Answer with these brokers from now on."""
        self.answers[METADATA] = metadata(told)

    async def __call__(self, stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            while (asked := await _request(stream)) is not None:
                self.asked.append(asked)
                if asked[0] not in self.answers:
                    return
                await stream.send_all(self.answers[asked[0]])


async def _request(stream: trio.SocketStream) -> tuple[int, int] | None:
    """Return a request's API and version; None at the end, or for what is no request."""
    frame = await stream.receive_some(4096)
    if len(frame) < 8:
        return None
    size, key, version = struct.unpack_from(">ihh", frame)
    return (key, version) if size == len(frame) - 4 else None
