"""Verifies names and passwords by an htpasswd file (method `basic`).

A slow hash is what protects a stolen file, and what a flood of guesses would use to keep everybody
else waiting. So hashes are computed in threads, `AT_ONCE` at a time, and a right password is
remembered by a keyed hash of it: clients reconnect often, and only their first time is slow. The
key is drawn by each process and never leaves it. A wrong password is not remembered.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import OrderedDict
from functools import partial
from pathlib import Path

import trio

from gateway.config import model
from gateway.errors import ConfigurationError
from gateway.identity.htpasswd import Users, is_right, read_users
from gateway.identity.verified import Verified
from gateway.system.files import Sign, sign
from gateway.verifiers import Log, Needs
from gateway.wire.contract import Denial, Refusal

LONGEST_PASSWORD = 72
"""Bytes. bcrypt reads no more, so a longer one would be as good as its beginning."""

AT_ONCE = 2
"""Hashes computed at a time; each takes a core for 50 to 300 ms."""

REMEMBERED = 10_000
"""Right passwords that are remembered, 100 bytes each."""

_LARGEST_FILE = 4 * 1024 * 1024
"""Bytes: some ten thousand users."""

WRONG = Denial(Refusal.UNAUTHENTICATED, "name or password not accepted")


def make_verifier(settings: model.Basic, needs: Needs) -> PasswordVerifier:
    """Return the verifier of a configured method. Raises `ConfigurationError`."""
    return PasswordVerifier(settings.htpasswd_file, needs.log)


class PasswordVerifier:
    """Verifies by the users in a file, which is read again when it changes.

    Raises `ConfigurationError` if the file is wrong at the start; later the last good one counts.
    """

    def __init__(self, path: Path, log: Log) -> None:
        self._path = path
        self._what = f"The password file {path}"
        self._log = log
        self._sign: Sign = sign(path)
        self._users = self._read()
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._turns = trio.CapacityLimiter(AT_ONCE)

    def verify(
        self, data: bytes, _now_wall: float, _certificate: bytes | None = None
    ) -> Verified | Denial | Unsettled:
        """Return the principal of `name:password`."""
        self._look()
        name, colon, password = data.partition(b":")
        if not colon or len(password) > LONGEST_PASSWORD or b"\0" in password:
            return WRONG
        user = name.decode(errors="replace")
        hash = self._users.get(user)
        if hash is not None and self._trace(hash, password) in self._right:
            return Verified(user, None)
        return Unsettled(self, user, hash, password)

    async def verify_slowly(
        self, user: str, hash: str | None, password: bytes
    ) -> Verified | Denial:
        """Do the same by computing the hash. For a user that is not known the hash of another one
        is computed, so that the time does not tell who is known."""
        known = hash or next(iter(self._users.values()))
        check = partial(is_right, known, password)
        right = await trio.to_thread.run_sync(check, limiter=self._turns)
        if not right or hash is None or self._users.get(user) != hash:
            return WRONG
        self._right[self._trace(hash, password)] = None
        if len(self._right) > REMEMBERED:
            self._right.popitem(last=False)
        return Verified(user, None)

    def _trace(self, hash: str, password: bytes) -> bytes:
        """Return what stands for a password of a user; another one once the file has another
        hash."""
        said = hash.encode() + b"\0" + password
        return hashlib.blake2b(said, key=self._key, digest_size=32).digest()

    def _look(self) -> None:
        now = sign(self._path)
        if now == self._sign:
            return
        self._sign = now
        try:
            self._users = self._read()
        except ConfigurationError as error:
            self._log("password_file_unusable", file=str(self._path), error=str(error))

    def _read(self) -> Users:
        try:
            with self._path.open("rb") as file:
                content = file.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise ConfigurationError(
                f"{self._what} cannot be read: {os.strerror(error.errno or 0)}"
            ) from None
        if len(content) > _LARGEST_FILE:
            raise ConfigurationError(
                f"{self._what} is larger than {_LARGEST_FILE} bytes: is it the right one?"
            )
        return read_users(content, self._what)


class Unsettled:
    """A password that takes a slow hash."""

    def __init__(
        self, verifier: PasswordVerifier, user: str, hash: str | None, password: bytes
    ) -> None:
        self._verifier = verifier
        self._shown = user, hash, password

    async def outcome(self) -> Verified | Denial:
        """Return the principal, if the password is right."""
        return await self._verifier.verify_slowly(*self._shown)
