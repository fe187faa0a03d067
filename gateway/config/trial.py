"""A trial issuer of tokens: a key that signs one token and is discarded.

With it a first client can connect to a gateway that verifies, and nothing on disk can sign another
token. This module loads joserfc and cryptography: import it only where it is used.
"""

from __future__ import annotations

from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import RSAKey

SUBJECT = "trial"
"""The principal of the token."""

LIFETIME = 7 * 24 * 3600
"""Seconds: long enough for trials, too short to be forgotten in production."""

_EXPONENT, _BITS = 65537, 2048  # the usual exponent, and the least size for RS256 (RFC 7518)


class Trial(NamedTuple):
    """The issuer's public key as PEM, and its token, signed with RS256."""

    public_key: bytes
    token: bytes


def issue(now_wall: int) -> Trial:
    """Sign the token of a new issuer, valid for `LIFETIME` from now (seconds since 1970)."""
    key = generate_private_key(_EXPONENT, _BITS)
    claims = {"sub": SUBJECT, "iat": now_wall, "exp": now_wall + LIFETIME}
    token = jwt.encode({"alg": "RS256"}, claims, RSAKey.import_key(key))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return Trial(public, token.encode() + b"\n")
