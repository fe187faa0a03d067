"""The requests and responses that carry SASL.

A client names a mechanism in SaslHandshake. Its tokens follow in SaslAuthenticate; after version 0
of SaslHandshake they follow bare, with only their size before them (KIP-43, KIP-152).

All refused clients are sent the same response, so that nobody learns whether a user exists, or how
long a credential would have been valid.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka import frames
from gateway.wire.kafka.frames import SIZE, Head
from gateway.wire.kafka.sasl.exchange import LARGEST_TOKEN
from gateway.wire.kafka.schema import Api, Schema, api
from gateway.wire.kafka.walk import Place, as_text, plan, read_unsigned, text_at, unsigned

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36

UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
SASL_AUTHENTICATION_FAILED = 58

FAILED = b"Authentication failed"
"""The only error text that a refused client gets."""

LONGEST_MECHANISM = 64
"""The most bytes of a mechanism's name. SASL allows 20 (RFC 4422)."""

LONGEST_MS = 2**63 - 1


class Offered(NamedTuple):
    """A broker's response to SaslHandshake: its error code, and the mechanisms that it supports."""

    error: int
    mechanisms: tuple[str, ...]


class Answered(NamedTuple):
    """A broker's response to SaslAuthenticate. `text`: the error message. `data`: the broker's
    token. `lifetime_ms`: milliseconds after which the broker closes the connection, unless it is
    authenticated again (KIP-368); 0: the broker does not close it."""

    error: int
    text: str
    data: bytes
    lifetime_ms: int

    def __repr__(self) -> str:
        return f"Answered(error={self.error}, data=<{len(self.data)} bytes>)"


# -- of clients ----------------------------------------------------------------------------------


def mechanism_of(head: Head, frame: bytes) -> str:
    """Return the mechanism that a SaslHandshake request names. Raises `PeerError` if the request is
    truncated or the name is invalid."""
    schema = _api(SASL_HANDSHAKE).request
    (place,) = _places(schema, head.version, frame, head.body, "Mechanism")
    return _mechanism(text_at(frame, place, flexible=head.version >= schema.flexible))


def token_of(head: Head, frame: bytes) -> bytes:
    """Return the token in a SaslAuthenticate request. Raises `PeerError` if the request is
    truncated or the token too large."""
    schema = _api(SASL_AUTHENTICATE).request
    (place,) = _places(schema, head.version, frame, head.body, "AuthBytes")
    return _bytes_at(frame, place, flexible=head.version >= schema.flexible)


def offer(head: Head, mechanisms: Sequence[str], error: int = 0) -> bytes:
    """Return the response to SaslHandshake. It lists the supported mechanisms, even if the client
    named an unsupported one. `error`: the error code; 0: the client may go on."""
    texts = b"".join(as_text(name.encode(), flexible=False) for name in mechanisms)
    return _response(head, struct.pack(">hi", error, len(mechanisms)) + texts)


def response(head: Head, data: bytes, lifetime_ms: int = 0) -> bytes:
    """Return the response to SaslAuthenticate that sends the client a challenge, or that accepts
    the client. `lifetime_ms`: milliseconds after which the accepted credential expires; 0: never.
    """
    return _authenticated(head, 0, None, data, lifetime_ms)


def failed(head: Head) -> bytes:
    """Return the response to SaslAuthenticate that refuses a client. Close the connection
    afterwards."""
    return _authenticated(head, SASL_AUTHENTICATION_FAILED, FAILED, b"", 0)


def misplaced(head: Head) -> bytes:
    """Return the response to a SaslHandshake or SaslAuthenticate request that comes when the
    protocol does not allow it. Close the connection afterwards."""
    if head.key == SASL_HANDSHAKE:
        return offer(head, (), ILLEGAL_SASL_STATE)
    return _authenticated(head, ILLEGAL_SASL_STATE, None, b"", 0)


def lifetime_ms(left: float) -> int:
    """Return a credential's lifetime in milliseconds, as a response to SaslAuthenticate states it;
    0: the credential does not expire. `left`: the lifetime in seconds; `math.inf` if it does not
    expire."""
    return 0 if math.isinf(left) else min(LONGEST_MS, max(1, int(left * 1000)))


# -- to brokers ----------------------------------------------------------------------------------


def ask_for(mechanism: str, version: int, correlation: int, client: bytes | None) -> bytes:
    """Return the frame of a SaslHandshake request that asks for a mechanism. `client`: the client
    id."""
    body = as_text(mechanism.encode(), flexible=False)
    return frames.written(_api(SASL_HANDSHAKE), version, correlation, client, body)


def show(token: bytes, version: int, correlation: int, client: bytes | None) -> bytes:
    """Return the frame of a SaslAuthenticate request that has a token. `client`: the client id."""
    known = _api(SASL_AUTHENTICATE)
    flexible = version >= known.request.flexible
    body = _as_bytes(token, flexible=flexible) + (b"\0" if flexible else b"")
    return frames.written(known, version, correlation, client, body)


def read_offer(version: int, frame: bytes) -> Offered:
    """Return the content of a broker's response to SaslHandshake. Raises `PeerError` if the
    response is truncated."""
    known = _api(SASL_HANDSHAKE)
    at = frames.body_of_response(known, version, frame)
    error, mechanisms = _places(known.response, version, frame, at, "ErrorCode", "Mechanisms")
    count = int.from_bytes(frame[mechanisms.start : mechanisms.start + 4])
    at, names = mechanisms.start + 4, list[str]()
    for _ in range(count):
        until = at + 2 + int.from_bytes(frame[at : at + 2])
        names.append(_mechanism(frame[at + 2 : until]))
        at = until
    return Offered(_number(frame, error), tuple(names))


def read_answer(version: int, frame: bytes) -> Answered:
    """Return the content of a broker's response to SaslAuthenticate. Raises `PeerError` if the
    response is truncated or its token too large."""
    known = _api(SASL_AUTHENTICATE)
    flexible = version >= known.response.flexible
    wanted = ("ErrorCode", "ErrorMessage", "AuthBytes", "SessionLifetimeMs")
    at = frames.body_of_response(known, version, frame)
    error, text, data, *lifetime = _places(known.response, version, frame, at, *wanted)
    return Answered(
        _number(frame, error),
        (text_at(frame, text, flexible=flexible) or b"").decode(errors="replace"),
        _bytes_at(frame, data, flexible=flexible),
        max(0, _number(frame, lifetime[0])) if lifetime else 0,
    )


# -- without a request ---------------------------------------------------------------------------


def bare(token: bytes) -> bytes:
    """Return the frame of a bare token: a token that is sent without a SaslAuthenticate request
    around it."""
    return SIZE.pack(len(token)) + token


def read_bare(frame: bytes) -> bytes:
    """Return the token in the frame of a bare token (see `bare`). Raises `PeerError` if the token
    is too large."""
    return _bounded(frame[SIZE.size :])


# -- parts of messages ---------------------------------------------------------------------------


def _api(key: int) -> Api:
    known = api(key)
    assert known is not None
    return known


def _places(schema: Schema, version: int, frame: bytes, at: int, *wanted: str) -> list[Place]:
    """Return the places of the wanted fields in a body that ends with its frame."""
    if at < 0:
        raise PeerError("a version of SASL that is not known")
    walk = plan(schema, version, frozenset(wanted), whole=True).walk(frame, at, len(frame))
    if walk.end != len(frame):
        raise PeerError(f"a frame with {len(frame) - walk.end} bytes too many")
    return walk.places


def _response(head: Head, body: bytes) -> bytes:
    return frames.response(_api(head.key), head.version, head.correlation, body)


def _authenticated(
    head: Head, error: int, text: bytes | None, data: bytes, lifetime_ms: int
) -> bytes:
    flexible = head.version >= _api(SASL_AUTHENTICATE).response.flexible
    null = b"\0" if flexible else b"\xff\xff"
    body = struct.pack(">h", error)
    body += null if text is None else as_text(text, flexible=flexible)
    body += _as_bytes(data, flexible=flexible)
    if head.version >= 1:
        body += struct.pack(">q", lifetime_ms)
    return _response(head, body + (b"\0" if flexible else b""))


def _mechanism(name: bytes | None) -> str:
    if name is None or len(name) > LONGEST_MECHANISM or not name.isascii():
        raise PeerError("a mechanism of a name that cannot be")
    return name.decode("ascii")


def _number(frame: bytes, place: Place) -> int:
    return int.from_bytes(frame[place.start : place.end], signed=True)


def _as_bytes(data: bytes, *, flexible: bool) -> bytes:
    return (unsigned(len(data) + 1) if flexible else len(data).to_bytes(4)) + data


def _bytes_at(frame: bytes, place: Place, *, flexible: bool) -> bytes:
    at = read_unsigned(frame, place.start, place.end)[1] if flexible else place.start + 4
    return _bounded(frame[at : place.end])


def _bounded(token: bytes) -> bytes:
    if len(token) > LARGEST_TOKEN:
        raise PeerError(f"a SASL token of {len(token)} bytes")
    return token
