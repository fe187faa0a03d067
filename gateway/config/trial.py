"""A trial issuer of tokens: a key that signs one token and is forgotten.

So the first client can connect to a gateway that verifies, and what stays on disk can make no
other token. This module loads joserfc and cryptography: import it where it is used.
"""

from __future__ import annotations

from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import RSAKey

SUBJECT = "trial"
"""Whom the token names."""

LIFETIME = 7 * 24 * 3600
"""Seconds. Long enough to try things out, too short to be forgotten in use."""

_EXPONENT, _BITS = 65537, 2048  # what everybody has, and the least that RS256 may have (RFC 7518)


class Trial(NamedTuple):
    """The issuer's public key as PEM, and its token, which RS256 verifies."""

    public_key: bytes
    token: bytes


def issue(now_wall: int) -> Trial:
    """Sign the token of a new issuer, valid for `LIFETIME` from now (seconds since 1970)."""
    key = generate_private_key(_EXPONENT, _BITS)
    claims = {"sub": SUBJECT, "iat": now_wall, "exp": now_wall + LIFETIME}
    token = jwt.encode({"alg": "RS256"}, claims, RSAKey.import_key(key))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return Trial(public, token.encode() + b"\n")
