"""Verifies names and passwords by an htpasswd file (method `basic`).

A slow hash protects the passwords if the file is stolen. It is computed in a thread, when it is the
client's turn (`control.turns`). A right password is remembered as a fast keyed hash, so that only a
client's first connection is slow; clients reconnect often. Each process has a random key for this
hash, which never leaves the process. A wrong password is not remembered.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from pathlib import Path

import trio

from gateway.config import model
from gateway.identity.htpasswd import is_right, read_users
from gateway.identity.verified import Verified
from gateway.verifiers import Log, Needs
from gateway.verifiers.users import UserFile
from gateway.wire.contract import Denial, Refusal

LONGEST_PASSWORD = 72
"""Bytes. bcrypt reads no more, so a longer one would be as good as its beginning."""

REMEMBERED = 10_000
"""Right passwords that are remembered, 100 bytes each."""

WRONG = Denial(Refusal.UNAUTHENTICATED, "name or password not accepted")


def make_verifier(settings: model.Basic, needs: Needs) -> PasswordVerifier:
    """Return the verifier for these settings. Raises `ConfigurationError`."""
    return PasswordVerifier(settings.htpasswd_file, needs.log)


class PasswordVerifier:
    """Verifies passwords by the hashes in a file, which is read again when it changes.

    Raises `ConfigurationError` if the file is wrong at the start. If it becomes wrong later, its
    last good content is still used.
    """

    def __init__(self, path: Path, log: Log) -> None:
        self._file = UserFile(path, f"The password file {path}", read_users, log)
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()

    def verify(
        self, data: bytes, _now_wall: float, _certificate: bytes | None = None
    ) -> Verified | Denial | Unsettled:
        """Return the principal that `name:password` proves, or a denial; `Unsettled` if a slow hash
        has to be computed first."""
        users = self._file.current()
        name, colon, password = data.partition(b":")
        if not colon or len(password) > LONGEST_PASSWORD or b"\0" in password:
            return WRONG
        user = name.decode(errors="replace")
        hash = users.get(user)
        if hash is not None and self._trace(hash, password) in self._right:
            return Verified(user, None)
        return Unsettled(self, user, hash, password)

    async def verify_slowly(
        self, user: str, hash: str | None, password: bytes
    ) -> Verified | Denial:
        """Compute the slow hash of a password; return the principal, or a denial if the password is
        wrong. If the user is unknown, the hash of another user is computed, so that the time does
        not reveal which users exist."""
        if hash is not None and self._trace(hash, password) in self._right:
            return Verified(user, None)  # by another connection, while this one waited
        known = hash or next(iter(self._file.users.values()))
        right = await trio.to_thread.run_sync(is_right, known, password)
        if not right or hash is None or self._file.users.get(user) != hash:
            return WRONG
        self._right[self._trace(hash, password)] = None
        if len(self._right) > REMEMBERED:
            self._right.popitem(last=False)
        return Verified(user, None)

    def _trace(self, hash: str, password: bytes) -> bytes:
        """Return a keyed hash of a user's password, which differs once the file has another hash of
        the user."""
        said = hash.encode() + b"\0" + password
        return hashlib.blake2b(said, key=self._key, digest_size=32).digest()


class Unsettled:
    """A password whose slow hash has not been computed yet."""

    def __init__(
        self, verifier: PasswordVerifier, user: str, hash: str | None, password: bytes
    ) -> None:
        self._verifier = verifier
        self._shown = user, hash, password
        self.hashes_for = user

    async def outcome(self) -> Verified | Denial:
        """Compute the hash; return the principal, or a denial if the password is wrong."""
        return await self._verifier.verify_slowly(*self._shown)
