"""The authentication of the gateway at a broker.

A *proving* is a generator that yields tokens to send to the broker; after each token it is sent the
data of the broker's response. When the generator ends, the broker has accepted the credential; by
SCRAM it has also proven that it knows the password.

A broker refuses a credential by an error code in its response. Such a response is not sent to the
proving.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Generator, Mapping
from functools import lru_cache

from gateway.errors import PeerError
from gateway.wire.contract import Credential
from gateway.wire.kafka.sasl import bearer, plain, scram
from gateway.wire.scram import ScramKeys, scram_keys

SHOWN_BY = {
    "basic": ("SCRAM-SHA-512", "SCRAM-SHA-256", plain.MECHANISM),
    "token": (bearer.MECHANISM,),
}
"""By method of a credential: the mechanisms that can show it, the best one first."""

_REMEMBERED = 16
"""The keys of passwords that are kept. A cluster has one salt for each user and mechanism, at all
its brokers."""

Proving = Generator[bytes, bytes, None]


def chosen(credential: Credential, offered: Collection[str], *, plainly: bool) -> str | None:
    """Return the SASL mechanism by which to present a credential to a broker; None if the broker
    supports no suitable one. `offered`: the mechanisms that the broker supports. `plainly`: whether
    the broker may get the password itself. A false broker could offer PLAIN alone, so set this only
    for brokers that TLS has identified, or that an operator trusts."""
    able = SHOWN_BY.get(credential.method, ())
    fit = (
        mechanism
        for mechanism in able
        if mechanism in offered and (plainly or mechanism != plain.MECHANISM)
    )
    return next(fit, None)


def client(
    mechanism: str,
    credential: Credential,
    extensions: Mapping[str, str] | None = None,
    nonce: str | None = None,
) -> Proving:
    """Return a generator (see this module) of the tokens that present a credential to a broker, by
    a mechanism that `chosen` has returned. It raises `PeerError` if the broker deviates from the
    mechanism. `extensions`: the SASL extensions that a client sent with its token, if the gateway
    forwards this token. `nonce`: the gateway's nonce; None: a new random one."""
    if mechanism == bearer.MECHANISM:
        return _bearer(credential.data, extensions or {})
    user, _, password = credential.data.partition(b":")
    if mechanism == plain.MECHANISM:
        return _plain(user, password)
    nonce = nonce or secrets.token_urlsafe(scram.NONCE)
    return _scram(mechanism, user.decode(), password, nonce)


def _plain(user: bytes, password: bytes) -> Proving:
    yield plain.written(user, password)


def _bearer(token: bytes, extensions: Mapping[str, str]) -> Proving:
    refused = yield bearer.written(token, extensions)
    if refused:
        yield bearer.UNDERSTOOD
        raise PeerError("a broker that accepts a token after it has refused it")


def _scram(mechanism: str, user: str, password: bytes, nonce: str) -> Proving:
    first = scram.written_first(user, nonce)
    challenge = yield first.header + first.bare
    server_first = scram.read_challenge(challenge, nonce)
    keys = _keys(mechanism, password, server_first.salt, server_first.iterations)
    final, signature = scram.proof(mechanism, first, challenge, server_first.nonce, keys)
    response = yield final
    scram.check_signature(response, signature)


@lru_cache(_REMEMBERED)
def _keys(mechanism: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """Return the keys of a password, and keep them: each connection to a broker needs them."""
    return scram_keys(mechanism, password, salt, iterations)
