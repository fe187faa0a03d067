"""How the gateway shows its own credential to a broker.

A *proving* is a generator that yields tokens for the broker, and is sent what the broker answers
each of them with. It ends when the broker has answered everything: the broker has accepted the
credential then, and by SCRAM has proven that it knows the password.

A refusal is an error code of the broker's response, and is not sent to a proving.
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
"""Keys of passwords. A cluster has one salt for each user and mechanism, at all its brokers."""

Proving = Generator[bytes, bytes, None]


def chosen(credential: Credential, offered: Collection[str], *, plainly: bool) -> str | None:
    """Return the mechanism by which to show a credential to a broker that offers some; None: there
    is none. `plainly`: the broker may be shown the password itself. It is up to the broker what it
    offers, so this is for brokers that TLS has identified, or an operator trusts."""
    able = SHOWN_BY.get(credential.method, ())
    fit = (it for it in able if it in offered and (plainly or it != plain.MECHANISM))
    return next(fit, None)


def client(
    mechanism: str,
    credential: Credential,
    extensions: Mapping[str, str] | None = None,
    nonce: str | None = None,
) -> Proving:
    """Return the proving of a credential by a mechanism that `chosen` returned. It raises
    `PeerError` if the broker does not keep to the mechanism. `extensions`: of a client whose token
    this is. `nonce`: ours; None: a new random one."""
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
    found = scram.read_challenge(challenge, nonce)
    keys = _keys(mechanism, password, found.salt, found.iterations)
    final, signature = scram.proof(mechanism, first, challenge, found.nonce, keys)
    response = yield final
    scram.check_signature(response, signature)


@lru_cache(_REMEMBERED)
def _keys(mechanism: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    """Return the keys of a password, and remember them: each connection to a broker needs them."""
    return scram_keys(mechanism, password, salt, iterations)
