"""The heads of requests and responses.

Source: the protocol guide of Apache Kafka; KIP-482 for the tagged fields of heads; KIP-511 for the
response to ApiVersions, whose head never has tagged fields, because the client does not know yet
which versions the broker supports.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.walk import over_tags

SIZE = struct.Struct(">i")
"""The size field before each frame: the number of bytes that follow."""

REQUEST = struct.Struct(">ihhi")
"""The head of each request up to its client id: size, API key, version, correlation id."""

RESPONSE = struct.Struct(">ii")
"""The head of each response: size, correlation id."""

API_VERSIONS = 18

LONGEST_CLIENT = 1024
"""The most bytes of a client id. Brokers allow 32,767; real ids have some dozens, and each is
kept."""

_HEAD = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")


class Head(NamedTuple):
    """The head of a request. `client`: the client id; None if the request has none. `body`: the
    offset of the body from the start of the frame, size field included; -1 if the gateway does not
    know this API or version."""

    key: int
    version: int
    correlation: int
    client: bytes | None
    body: int


def request(frame: bytes) -> Head:
    """Return the head of a request, given its whole frame. Raises `PeerError` if the head is
    truncated or the client id is too long."""
    try:
        key, version, correlation, length = _HEAD.unpack_from(frame, SIZE.size)
    except struct.error as error:
        raise PeerError("a request without a head") from error
    at = SIZE.size + _HEAD.size
    if not -1 <= length <= LONGEST_CLIENT or max(0, length) > len(frame) - at:
        raise PeerError(f"a client id of {length} bytes")
    client = frame[at : at + length] if length >= 0 else None
    at += max(0, length)
    known = api(key)
    if known is None or not known.request.first <= version <= known.request.last:
        return Head(key, version, correlation, client, -1)
    if version >= known.request.flexible:
        at = over_tags(frame, at, len(frame))
    return Head(key, version, correlation, client, at)


def written(known: Api, version: int, correlation: int, client: bytes | None, body: bytes) -> bytes:
    """Return the frame of a request with this body. It is for requests that the gateway itself
    sends. `client`: the client id; None: no client id."""
    length = -1 if client is None else len(client)
    rest = _HEAD.pack(known.key, version, correlation, length) + (client or b"")
    rest += (b"\0" if version >= known.request.flexible else b"") + body
    return SIZE.pack(len(rest)) + rest


def correlation(frame: bytes) -> int:
    """Return the correlation id of a response, given its whole frame. Raises `PeerError` if the
    head is truncated."""
    if len(frame) < SIZE.size + _CORRELATION.size:
        raise PeerError("an answer without a head")
    number: int = _CORRELATION.unpack_from(frame, SIZE.size)[0]
    return number


def body_of_response(known: Api, version: int, frame: bytes) -> int:
    """Return the offset of the body in the frame of a response. Raises `PeerError` if the head is
    truncated."""
    at = SIZE.size + _CORRELATION.size
    if known.key == API_VERSIONS or version < known.response.flexible:
        return at
    return over_tags(frame, at, len(frame))


def response(known: Api, version: int, correlation: int, body: bytes) -> bytes:
    """Return the frame of a response with this body."""
    flexible = known.key != API_VERSIONS and version >= known.response.flexible
    rest = _CORRELATION.pack(correlation) + (b"\0" if flexible else b"") + body
    return SIZE.pack(len(rest)) + rest
