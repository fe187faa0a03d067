"""Reads files of SCRAM credentials, and makes up credentials for unknown users.

A line is `name:mechanism:iterations:salt:stored key:server key`, the last three in base64. A user
may have a line for each mechanism.

A client is sent the salt and the iterations of a user before it has proved anything. So for a name
that is not in the file, both are made up from a keyed hash of the name: they are the same each
time, and have the sizes that salts and iterations in the file have. Without the key of the hash
nobody can distinguish them from real ones.
"""

from __future__ import annotations

import binascii
import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping

from gateway.errors import ConfigurationError
from gateway.identity.names import is_proper
from gateway.wire.scram import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    SCRAM_HASHES,
    ScramSecret,
    scram_keys,
)

LEAST_SALT, MOST_SALT = 8, 64
"""Bytes. Real ones have 16 to 32; a made up one is a hash of 64."""

USUAL_SALT, USUAL_ITERATIONS = 24, 16_384
"""Bytes, and the most iterations that Kafka's own tools accept."""

SIZES = {
    mechanism: hmac.new(b"", digestmod=hash_name).digest_size
    for mechanism, hash_name in SCRAM_HASHES.items()
}
"""Bytes of a key, by mechanism."""

Users = Mapping[tuple[str, str], ScramSecret]
"""Secrets by name and mechanism."""

_FORM = "name:mechanism:iterations:salt:stored key:server key"

_MAKE = "docs/configuration.md tells how to make one"


def line(
    user: str,
    password: str,
    mechanism: str = "SCRAM-SHA-256",
    iterations: int = USUAL_ITERATIONS,
    salt: bytes | None = None,
) -> str:
    """Return the line of a credentials file that has this user and password. `salt`: None: a random
    salt. Raises `ValueError` if the name is not valid."""
    if not is_proper(user) or ":" in user:
        raise ValueError("a name with a colon or a control character")
    salt = os.urandom(USUAL_SALT) if salt is None else salt
    keys = scram_keys(mechanism, password.encode(), salt, iterations)
    encoded = (b64encode(part).decode() for part in (salt, keys.stored, keys.server))
    return ":".join((user, mechanism, str(iterations), *encoded))


def read_users(content: bytes, what: str) -> Users:
    """Return the secrets in a credentials file, by user name and mechanism. Raises
    `ConfigurationError` if the file is malformed or empty. `what`: the beginning of the error's
    text, which describes the file."""
    users: dict[tuple[str, str], ScramSecret] = {}
    for number, text in enumerate(content.decode(errors="replace").splitlines(), 1):
        if not text.strip() or text.startswith("#"):
            continue
        try:
            secret = _read_line(text.strip())
        except ValueError as error:
            raise ConfigurationError(f"{what}, line {number}, {error}; {_MAKE}") from None
        if (secret.user, secret.mechanism) in users:
            raise ConfigurationError(
                f"{what}, line {number}, has a name and mechanism that are there before"
            )
        users[secret.user, secret.mechanism] = secret
    if not users:
        raise ConfigurationError(f"{what} names nobody; {_MAKE}")
    return users


def _read_line(text: str) -> ScramSecret:
    """Return what a line says. Raises `ValueError` whose text says what is wrong with it, without
    any of its keys."""
    parts = text.split(":")
    if len(parts) != _FORM.count(":") + 1 or not is_proper(parts[0]):
        raise ValueError(f"is not {_FORM}")
    user, mechanism, iterations, *encoded = parts
    if mechanism not in SCRAM_HASHES:
        raise ValueError(f"has a mechanism that is neither {' nor '.join(SCRAM_HASHES)}")
    if not iterations.isascii() or not iterations.isdigit() or len(iterations) > len("1000000"):
        raise ValueError("has iterations that are no number")
    if not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        raise ValueError(
            f"has iterations that are not from {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
        )
    salt, stored, server = map(_decoded, encoded)
    if not LEAST_SALT <= len(salt) <= MOST_SALT:
        raise ValueError(f"has a salt that is not {LEAST_SALT} to {MOST_SALT} bytes in base64")
    if {len(stored), len(server)} != {SIZES[mechanism]}:
        raise ValueError(f"has a key that is not {SIZES[mechanism]} bytes in base64")
    return ScramSecret(user, mechanism, salt, int(iterations), stored, server)


def _decoded(text: str) -> bytes:
    """Return what is encoded; nothing if it is not."""
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


class Phantoms:
    """Makes up secrets of users that are not among `users`, by a keyed hash."""

    def __init__(self, users: Users, key: bytes) -> None:
        self._key = key
        self._shapes = {mechanism: _shapes(users, mechanism) for mechanism in SCRAM_HASHES}

    def secret(self, user: str, mechanism: str) -> ScramSecret:
        """Return a made-up secret of this user. It looks like a real one, but no password fits
        it."""
        shapes = self._shapes[mechanism]
        chosen = int.from_bytes(self._hash("shape", mechanism, user))
        iterations, size = shapes[chosen % len(shapes)]
        salt = self._hash("salt", mechanism, user)[:size]
        stored, server = (self._hash(kind, mechanism, user) for kind in ("stored", "server"))
        length = SIZES[mechanism]
        return ScramSecret(user, mechanism, salt, iterations, stored[:length], server[:length])

    def _hash(self, *said: str) -> bytes:
        # No part but the last, the name, can have a NUL.
        return hmac.digest(self._key, "\0".join(said).encode(), "sha512")


def _shapes(users: Users, mechanism: str) -> list[tuple[int, int]]:
    """Return the iterations and the sizes of salts that users have; the usual ones if nobody has a
    secret of the mechanism."""
    shapes = {
        (secret.iterations, len(secret.salt))
        for secret in users.values()
        if secret.mechanism == mechanism
    }
    return sorted(shapes) or [(USUAL_ITERATIONS, USUAL_SALT)]
