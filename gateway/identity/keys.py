"""Reads keys for verifying tokens from files.

The formats are Pulsar's (`AuthTokenUtils`): a secret is raw bytes, a public key is DER or PEM, and
either may be written as `data:;base64,...`. This module imports joserfc and cryptography (20 MB),
so import it only if tokens are verified.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.errors import ConfigurationError

TokenKey = OctKey | RSAKey | ECKey | OKPKey
"""A shared secret, or a public key; `OKPKey` is Ed25519."""

SMALLEST_SECRET = 32
"""Bytes. HS256 needs a key as large as its hash (RFC 7518 section 3.2); Pulsar requires that
too."""

SMALLEST_RSA = 2048
"""Bits (RFC 7518 section 3.3)."""

_CURVES = (SECP256R1, SECP384R1, SECP521R1)  # of ES256, ES384, ES512

_LARGEST_FILE = 65_536
"""Bytes. The largest public keys have a few thousand: a larger file means a wrong path."""

_ENCODED = b"data:;base64,"

_MAKE_SECRET = "Make one with: bin/pulsar tokens create-secret-key --output <file>"
_MAKE_PUBLIC = "Get it with: openssl pkey -in <private key file> -pubout -out <file>"


def secret_key(path: Path) -> OctKey:
    """Return the shared secret in a file, for HS256, HS384 or HS512. Raises
    `ConfigurationError`."""
    what = f"The token secret file {path}"
    secret = read_key_file(path, what)
    if len(secret) < SMALLEST_SECRET:
        raise ConfigurationError(
            f"{what} holds {len(secret)} bytes, at least {SMALLEST_SECRET} are needed. "
            f"{_MAKE_SECRET}"
        )
    if b"-----BEGIN " in secret:
        raise _not_a_secret(what)
    try:
        return OctKey.import_key(secret)
    except ValueError:  # joserfc found a public key, which an attacker would not have to guess
        raise _not_a_secret(what) from None


def public_key(path: Path) -> RSAKey | ECKey | OKPKey:
    """Return the RSA, elliptic curve or Ed25519 public key in a file, in DER or PEM.

    Raises `ConfigurationError`.
    """
    what = f"The token public key file {path}"
    content = read_key_file(path, what)
    if b"PRIVATE KEY-----" in content:
        raise ConfigurationError(f"{what} holds a private key. {_MAKE_PUBLIC}")
    if b"BEGIN CERTIFICATE-----" in content:
        raise ConfigurationError(
            f"{what} holds a certificate. "
            "Get its key with: openssl x509 -in <certificate> -pubkey -noout"
        )
    try:
        load = load_pem_public_key if b"-----BEGIN " in content else load_der_public_key
        return _checked(load(content), what)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigurationError(
            f"{what} holds no public key in PEM or DER form. {_MAKE_PUBLIC}"
        ) from None


def _checked(key: object, what: str) -> RSAKey | ECKey | OKPKey:
    if isinstance(key, RSAPublicKey) and key.key_size >= SMALLEST_RSA:
        return RSAKey.import_key(key)
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return ECKey.import_key(key)
    if isinstance(key, Ed25519PublicKey):
        return OKPKey.import_key(key)
    raise ConfigurationError(
        f"{what} holds a key that cannot be used. "
        f"It must be RSA of at least {SMALLEST_RSA} bits, of the curve P-256, P-384 or P-521, or "
        "Ed25519"
    )


def read_key_file(path: Path, what: str) -> bytes:
    """Return the content of a key file. If the content is a `data:` URL in base64, it is decoded.
    Raises `ConfigurationError`, whose text begins with `what`, a description of the file."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"{what} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        raise ConfigurationError(
            f"{what} is larger than {_LARGEST_FILE} bytes: is it the right one?"
        )
    return _decoded(content, what) if content.startswith(_ENCODED) else content


def _decoded(content: bytes, what: str) -> bytes:
    try:
        return base64.b64decode(content.removeprefix(_ENCODED).strip(), validate=True)
    except binascii.Error:
        raise ConfigurationError(
            f"{what} begins with {_ENCODED.decode()} but what follows is not base64. "
            "Encode the key again, or put its raw bytes there"
        ) from None


def _not_a_secret(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} holds a public or private key, where a shared secret belongs. "
        "Name a public key as public_key_file instead"
    )
