"""Reads htpasswd files, and refuses hashes that are too weak if the file is stolen."""

from __future__ import annotations

import re
from collections.abc import Mapping

import argon2
import bcrypt

from gateway.errors import ConfigurationError
from gateway.identity.names import is_proper

LEAST_COST = 10
"""Of bcrypt, the logarithm of its rounds: 50 ms. `htpasswd -B` takes 5 if nothing is said, which is
1.5 ms."""

MOST_COST = 16
"""Of bcrypt: 3 s of a core for each try."""

LEAST_MEMORY, LEAST_WORK = 7168, 5 * 7168
"""KiB of argon2id, and KiB times passes: the smallest that OWASP recommends."""

MOST_WORK = 100 * LEAST_WORK
"""KiB times passes of argon2id: some seconds of a core for each try."""

_BCRYPT = re.compile(r"\$2[yba]\$([0-2][0-9]|3[01])\$[./A-Za-z0-9]{53}")

_MAKE = "make the line with: htpasswd -nB -C 12 <user>"


Users = Mapping[str, str]
"""Hashes by name."""


def read_users(content: bytes, what: str) -> Users:
    """Return the hashes in an htpasswd file, by user name. Its lines are `name:hash`.

    Raises `ConfigurationError`, whose text begins with `what` (a description of the file), if a
    hash is weak or unknown.
    """
    users: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, hash = line.strip().partition(":")
        if not colon or not is_proper(name):
            raise ConfigurationError(f"{what}, line {number}, is not name:hash; {_MAKE}")
        if name in users:
            raise ConfigurationError(f"{what}, line {number}, has a name that is there before")
        weak = _weakness(hash)
        if weak:
            raise ConfigurationError(f"{what}, line {number}, has {weak}; {_MAKE}")
        users[name] = hash
    if not users:
        raise ConfigurationError(f"{what} names nobody; {_MAKE}")
    return users


def _weakness(hash: str) -> str:
    """Return what is wrong with a hash; empty: nothing."""
    if hash.startswith(("$2y$", "$2b$", "$2a$")):
        whole = _BCRYPT.fullmatch(hash)
        if whole is None:
            return "a bcrypt hash that is not whole"
        cost = int(whole[1])
        if cost > MOST_COST:
            return f"bcrypt of cost {cost}, above {MOST_COST}"
        return "" if cost >= LEAST_COST else f"bcrypt of cost {cost}, below {LEAST_COST}"
    if not hash.startswith("$argon2id$"):
        return "neither bcrypt nor argon2id"
    try:
        used = argon2.extract_parameters(hash)
    except argon2.exceptions.InvalidHashError:
        return "an argon2id hash that is not whole"
    if used.memory_cost < LEAST_MEMORY:
        return f"argon2id of {used.memory_cost} KiB, below {LEAST_MEMORY}"
    work = used.memory_cost * used.time_cost
    if not LEAST_WORK <= work <= MOST_WORK:
        bounds = f"not from {LEAST_WORK} to {MOST_WORK}"
        return f"argon2id of {work} KiB times passes, {bounds}"
    return ""


def is_right(hash: str, password: bytes) -> bool:
    """Return whether a password matches a hash. This takes 50 to 300 ms."""
    if hash.startswith("$argon2id$"):
        try:
            return argon2.PasswordHasher().verify(hash, password)
        except argon2.exceptions.VerificationError:
            return False
    return bcrypt.checkpw(password, b"$2b$" + hash[4:].encode())
