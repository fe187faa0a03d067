"""Keys that seal the names of brokers with AES-SIV (RFC 5297), which is deterministic and
authenticated.

The name of a broker is the key of a client's connection pool. If sealing used a nonce, each lookup
would return another name, and the client would open another connection. SIV reveals that two equal
texts have equal seals, which is intended here.
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.errors import ConfigurationError

SEAL_OVERHEAD = 17
"""Bytes that sealing adds: the key id, and the synthetic initialization vector."""

_SMALLEST_FILE = 32
"""Bytes, so 256 random bits: AES-256-SIV is no stronger than the secret that it is derived from."""

_LARGEST_FILE = 4096
"""Bytes. A key file has some tens: a larger file means a wrong path."""

_PURPOSE = b"gateway: sealed broker names, format 2"
"""Separates these keys from other keys derived from the same file, and formats from each other."""

_CIPHER_KEY = 64
"""AES-256-SIV takes two 256-bit keys."""


class SealKey:
    """A key that seals the names of brokers. `key_id`: a number from 0 to 255 that is derived from
    the same secret, so it is the same on all replicas."""

    __slots__ = ("_cipher", "_prefix", "key_id")

    def __init__(self, secret: bytes) -> None:
        derived = HKDF(SHA256(), _CIPHER_KEY + 1, salt=None, info=_PURPOSE).derive(secret)
        self._cipher = AESSIV(derived[:_CIPHER_KEY])
        self._prefix = derived[_CIPHER_KEY:]
        self.key_id = self._prefix[0]

    def __repr__(self) -> str:
        return f"SealKey(key_id={self.key_id})"

    @classmethod
    def from_file(cls, path: Path) -> SealKey:
        """Derive the key from a file with at least 32 random bytes. Raises `ConfigurationError`."""
        try:
            with path.open("rb") as file:
                secret = file.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise _file_error(path, f"cannot be read: {error.strerror}") from None
        if not _SMALLEST_FILE <= len(secret) <= _LARGEST_FILE:
            raise _file_error(path, f"must hold {_SMALLEST_FILE} to {_LARGEST_FILE} bytes")
        if len(set(secret)) == 1:
            raise _file_error(path, "holds one byte over and over, which everybody can guess")
        return cls(secret)

    @classmethod
    def random(cls) -> SealKey:
        """Return a random key, which no other process has. It is for a process without a configured
        key."""
        return cls(os.urandom(_SMALLEST_FILE))

    def seal(self, plaintext: bytes) -> bytes:
        """Return a text in sealed form, `SEAL_OVERHEAD` bytes longer. The text must not be
        empty."""
        return self._prefix + self._cipher.encrypt(plaintext, None)

    def open(self, sealed: bytes) -> bytes | None:
        """Return the text that this key has sealed as `sealed`; None if another key sealed it, or
        none did."""
        if len(sealed) <= SEAL_OVERHEAD or sealed[:1] != self._prefix:
            return None
        try:
            return self._cipher.decrypt(sealed[1:], None)
        except InvalidTag:
            return None


def _file_error(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"The key file {path} for sealed broker names {why}. "
        f"Make one with: head -c {_SMALLEST_FILE} /dev/urandom > {path}"
    )
