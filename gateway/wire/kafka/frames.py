"""The heads of requests and answers.

Source: the protocol guide of Apache Kafka; KIP-482 for the tagged fields of heads, KIP-511 for the
answer of ApiVersions, whose head never has them, as its client does not know yet what it talks to.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.walk import over_tags

SIZE = struct.Struct(">i")
"""Before each frame: the bytes that follow."""

API_VERSIONS = 18

LONGEST_CLIENT = 1024
"""Bytes of a client id. Brokers allow 32,767; real ones have some dozens, and each is kept."""

_HEAD = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")


class Head(NamedTuple):
    """The head of a request. `client`: the client id, None without one. `body`: the offset of the
    body in the frame, its size included; -1 if the gateway does not know this API or version."""

    key: int
    version: int
    correlation: int
    client: bytes | None
    body: int


def request(frame: bytes) -> Head:
    """Return the head of a whole frame. Raises `PeerError` if it is torn."""
    try:
        key, version, correlation, length = _HEAD.unpack_from(frame, SIZE.size)
    except struct.error as error:
        raise PeerError("a request without a head") from error
    at = SIZE.size + _HEAD.size
    if not -1 <= length <= LONGEST_CLIENT or max(0, length) > len(frame) - at:
        raise PeerError(f"a client id of {length} bytes")
    client = frame[at : at + length] if length >= 0 else None
    at += max(0, length)
    found = api(key)
    if found is None or not found.request.first <= version <= found.request.last:
        return Head(key, version, correlation, client, -1)
    if version >= found.request.flexible:
        at = over_tags(frame, at, len(frame))
    return Head(key, version, correlation, client, at)


def written(it: Api, version: int, correlation: int, client: bytes | None, body: bytes) -> bytes:
    """Return a request of our own with this body. `client`: the client id, None without one."""
    length = -1 if client is None else len(client)
    rest = _HEAD.pack(it.key, version, correlation, length) + (client or b"")
    rest += (b"\0" if version >= it.request.flexible else b"") + body
    return SIZE.pack(len(rest)) + rest


def correlation(frame: bytes) -> int:
    """Return the correlation id of a whole answer. Raises `PeerError` if it is torn."""
    if len(frame) < SIZE.size + _CORRELATION.size:
        raise PeerError("an answer without a head")
    found: int = _CORRELATION.unpack_from(frame, SIZE.size)[0]
    return found


def body_of_response(it: Api, version: int, frame: bytes) -> int:
    """Return the offset of the body in a response. Raises `PeerError` if its head is torn."""
    at = SIZE.size + _CORRELATION.size
    if it.key == API_VERSIONS or version < it.response.flexible:
        return at
    return over_tags(frame, at, len(frame))


def response(it: Api, version: int, correlation: int, body: bytes) -> bytes:
    """Return a response with this body."""
    flexible = it.key != API_VERSIONS and version >= it.response.flexible
    rest = _CORRELATION.pack(correlation) + (b"\0" if flexible else b"") + body
    return SIZE.pack(len(rest)) + rest
