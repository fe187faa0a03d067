"""The first request of a connection, and what the client states about itself in it."""

from __future__ import annotations

import struct
from collections.abc import Generator
from sys import intern
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.contract import Denial, Peek, Peer, Step, StepResult
from gateway.wire.kafka.frames import API_VERSIONS, SIZE, Head
from gateway.wire.kafka.schema import api
from gateway.wire.kafka.versions import is_offered, library_of

HEAD = struct.Struct(">ihhi")
"""The head of a request: size, API key, version, correlation id."""

_TLS = b"\x16\x03"
_NO_REQUEST = "a connection does not begin with a request of Kafka"


def begins() -> Generator[Step, StepResult, int | Denial]:
    """Return the API key of the next request of an opening, which stays unread; or why none came.
    Raises `PeerError` if no request of Kafka begins with the bytes that came. The size is looked at
    first: a frame that is shorter than a head is whole before a head has come."""
    seen = yield Peek(Peer.CLIENT, SIZE.size)
    if isinstance(seen, bytes):
        if SIZE.unpack(seen)[0] < HEAD.size - SIZE.size:
            raise PeerError(_NO_REQUEST)
        seen = yield Peek(Peer.CLIENT, HEAD.size)
    if not isinstance(seen, bytes):
        assert isinstance(seen, Denial)
        return seen
    _, key, version, _ = HEAD.unpack(seen)
    if seen.startswith(_TLS):
        raise PeerError("TLS, on a listener without TLS")
    if version < 0 or not is_offered(key):
        raise PeerError(_NO_REQUEST)
    return int(key)


class Stated(NamedTuple):
    """What a client states about itself in an ApiVersions request. `library`: the client library's
    name and version; empty if not stated. `client_id`: the client id; empty if not stated."""

    library: str = ""
    client_id: str = ""


def stated(head: Head, frame: bytes) -> Stated:
    """Return the library and client id that an ApiVersions request states. Raises `PeerError` if
    the request is truncated."""
    known = api(API_VERSIONS)
    assert known is not None
    library = "" if head.body < 0 else intern(library_of(known.request, head, frame))
    return Stated(library, intern((head.client or b"").decode(errors="replace")))
