"""The requests and answers that carry SASL.

A client names a mechanism by SaslHandshake. Its tokens follow in SaslAuthenticate; after version 0
of SaslHandshake they follow bare, with nothing but their size before them (KIP-43, KIP-152).

A client that is refused gets one and the same response, so that nobody learns whether there is
such a user, and for how long its credential would have been good.
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
"""All that a client learns."""

LONGEST_MECHANISM = 64
"""Bytes. SASL allows 20 (RFC 4422)."""

LONGEST_MS = 2**63 - 1


class Offered(NamedTuple):
    """A broker's response to SaslHandshake."""

    error: int
    mechanisms: tuple[str, ...]


class Answered(NamedTuple):
    """A broker's response to SaslAuthenticate. `text`: why it refuses. `lifetime_ms`: after which
    the credential must be shown again, or it closes the connection (KIP-368); 0: never."""

    error: int
    text: str
    data: bytes
    lifetime_ms: int

    def __repr__(self) -> str:
        return f"Answered(error={self.error}, data=<{len(self.data)} bytes>)"


# -- of clients ----------------------------------------------------------------------------------


def mechanism_of(head: Head, frame: bytes) -> str:
    """Return what a client names in SaslHandshake. Raises `PeerError` if it is torn or no name."""
    it = _api(SASL_HANDSHAKE).request
    (place,) = _found(it, head.version, frame, head.body, "Mechanism")
    return _mechanism(text_at(frame, place, flexible=head.version >= it.flexible))


def token_of(head: Head, frame: bytes) -> bytes:
    """Return the token in SaslAuthenticate. Raises `PeerError` if it is torn or too large."""
    it = _api(SASL_AUTHENTICATE).request
    (place,) = _found(it, head.version, frame, head.body, "AuthBytes")
    return _bytes_at(frame, place, flexible=head.version >= it.flexible)


def offer(head: Head, mechanisms: Sequence[str], error: int = 0) -> bytes:
    """Return the response to SaslHandshake. It names the mechanisms that there are, which is all
    that a client may know that asked for another one."""
    texts = b"".join(as_text(name.encode(), flexible=False) for name in mechanisms)
    return _response(head, struct.pack(">hi", error, len(mechanisms)) + texts)


def response(head: Head, data: bytes, lifetime_ms: int = 0) -> bytes:
    """Return the response to SaslAuthenticate that goes on with a challenge, or accepts the client
    until `lifetime_ms` have passed; 0: for ever."""
    return _authenticated(head, 0, None, data, lifetime_ms)


def failed(head: Head) -> bytes:
    """Return the response to SaslAuthenticate that refuses a client. Close the connection then."""
    return _authenticated(head, SASL_AUTHENTICATION_FAILED, FAILED, b"", 0)


def misplaced(head: Head) -> bytes:
    """Return the response to SaslHandshake or SaslAuthenticate where none may come. Close the
    connection then."""
    if head.key == SASL_HANDSHAKE:
        return offer(head, (), ILLEGAL_SASL_STATE)
    return _authenticated(head, ILLEGAL_SASL_STATE, None, b"", 0)


def lifetime_ms(left: float) -> int:
    """Return how long a credential is good that is so for `left` seconds, `math.inf` for ever."""
    return 0 if math.isinf(left) else min(LONGEST_MS, max(1, int(left * 1000)))


# -- to brokers ----------------------------------------------------------------------------------


def ask_for(mechanism: str, version: int, correlation: int, client: bytes | None) -> bytes:
    """Return the SaslHandshake that names a mechanism. `client`: the client id."""
    body = as_text(mechanism.encode(), flexible=False)
    return frames.written(_api(SASL_HANDSHAKE), version, correlation, client, body)


def show(token: bytes, version: int, correlation: int, client: bytes | None) -> bytes:
    """Return the SaslAuthenticate that carries a token. `client`: the client id."""
    it = _api(SASL_AUTHENTICATE)
    flexible = version >= it.request.flexible
    body = _as_bytes(token, flexible=flexible) + (b"\0" if flexible else b"")
    return frames.written(it, version, correlation, client, body)


def read_offer(version: int, frame: bytes) -> Offered:
    """Return what a broker answers to SaslHandshake. Raises `PeerError` if it is torn."""
    it = _api(SASL_HANDSHAKE)
    at = frames.body_of_response(it, version, frame)
    error, mechanisms = _found(it.response, version, frame, at, "ErrorCode", "Mechanisms")
    count = int.from_bytes(frame[mechanisms.start : mechanisms.start + 4])
    at, names = mechanisms.start + 4, list[str]()
    for _ in range(count):
        until = at + 2 + int.from_bytes(frame[at : at + 2])
        names.append(_mechanism(frame[at + 2 : until]))
        at = until
    return Offered(_number(frame, error), tuple(names))


def read_answer(version: int, frame: bytes) -> Answered:
    """Return what a broker answers to SaslAuthenticate. Raises `PeerError` if it is torn or too
    large."""
    it = _api(SASL_AUTHENTICATE)
    flexible = version >= it.response.flexible
    wanted = ("ErrorCode", "ErrorMessage", "AuthBytes", "SessionLifetimeMs")
    at = frames.body_of_response(it, version, frame)
    error, text, data, *lifetime = _found(it.response, version, frame, at, *wanted)
    return Answered(
        _number(frame, error),
        (text_at(frame, text, flexible=flexible) or b"").decode(errors="replace"),
        _bytes_at(frame, data, flexible=flexible),
        max(0, _number(frame, lifetime[0])) if lifetime else 0,
    )


# -- without a request ---------------------------------------------------------------------------


def bare(token: bytes) -> bytes:
    """Return the frame of a token that is not in a request."""
    return SIZE.pack(len(token)) + token


def read_bare(frame: bytes) -> bytes:
    """Return the token of such a frame, which is whole. Raises `PeerError` if it is too large."""
    return _bounded(frame[SIZE.size :])


# -- parts of messages ---------------------------------------------------------------------------


def _api(key: int) -> Api:
    found = api(key)
    assert found is not None
    return found


def _found(it: Schema, version: int, frame: bytes, at: int, *wanted: str) -> list[Place]:
    """Return where the wanted fields of a body stand, which ends with its frame."""
    if at < 0:
        raise PeerError("a version of SASL that is not known")
    found = plan(it, version, frozenset(wanted), whole=True).walk(frame, at, len(frame))
    if found.end != len(frame):
        raise PeerError(f"a frame with {len(frame) - found.end} bytes too many")
    return found.places


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
