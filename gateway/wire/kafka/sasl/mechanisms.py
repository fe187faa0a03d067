"""The supported SASL mechanisms, and how each verifies a client."""

from __future__ import annotations

import secrets
from collections.abc import Collection

from gateway.wire.kafka.sasl import bearer, plain, scram
from gateway.wire.kafka.sasl.exchange import (
    LARGEST_TOKEN,
    MALFORMED,
    Exchange,
    Verifier,
)
from gateway.wire.scram import SCRAM_HASHES

METHODS = {
    plain.MECHANISM: "basic",
    **dict.fromkeys(SCRAM_HASHES, "scram"),
    bearer.MECHANISM: "token",
}
"""By mechanism: the method of `identity` that verifies it."""


def offered(methods: Collection[str]) -> tuple[str, ...]:
    """Return the SASL mechanisms that clients may choose. `methods`: the listener's authentication
    methods."""
    return tuple(name for name, method in METHODS.items() if method in methods)


def begin(mechanism: str, token: bytes, verifier: Verifier, nonce: str | None = None) -> Exchange:
    """Return the exchange with a client that has chosen an offered mechanism. `token`: the client's
    first token. `nonce`: the gateway's nonce; None: a new random one."""
    if len(token) > LARGEST_TOKEN:
        return _refused()
    if mechanism == plain.MECHANISM:
        return plain.exchange(token, verifier)
    if mechanism == bearer.MECHANISM:
        return bearer.exchange(token, verifier)
    return scram.exchange(mechanism, token, verifier, nonce or secrets.token_urlsafe(scram.NONCE))


def _refused() -> Exchange:
    yield from ()
    return MALFORMED
