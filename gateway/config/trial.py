"""A trial issuer of tokens: a private key that signs one token and is then discarded.

By this token a first client can connect to a gateway that verifies clients, and nothing on the disk
can sign another token. This module imports joserfc and cryptography, so import it only if it is
used.
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
    """The public key of a trial issuer, as PEM, and the token that it has signed, with RS256."""

    public_key: bytes
    token: bytes


def issue(now_wall: int) -> Trial:
    """Make a new issuer, and return its public key with a token that it has signed. The token is
    valid for `LIFETIME`. `now_wall`: the time now, in seconds since 1970."""
    key = generate_private_key(_EXPONENT, _BITS)
    claims = {"sub": SUBJECT, "iat": now_wall, "exp": now_wall + LIFETIME}
    token = jwt.encode({"alg": "RS256"}, claims, RSAKey.import_key(key))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return Trial(public, token.encode() + b"\n")
