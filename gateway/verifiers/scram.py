"""Verifies passwords that clients prove without showing them (method `scram`).

This verifier returns the secret of a user. From it, the protocol core checks the client's proof,
which is fast. A client that names the method `scram` as if it were a plain credential is refused.
"""

from __future__ import annotations

from pathlib import Path

from gateway.config import model
from gateway.identity.scram import Phantoms, Users, read_users
from gateway.identity.verified import Verified
from gateway.verifiers import Log, Needs
from gateway.verifiers.users import UserFile
from gateway.wire.contract import Denial, Refusal
from gateway.wire.scram import ScramSecret

WRONG = Denial(Refusal.UNAUTHENTICATED, "name or password not accepted")


def make_verifier(settings: model.Scram, needs: Needs) -> ScramVerifier:
    """Return the verifier for these settings. Raises `ConfigurationError`."""
    return ScramVerifier(settings.credentials_file, needs.secret, needs.log)


class ScramVerifier:
    """Verifies users by the secrets in a file, which is read again when it changes. `key`: the key
    by which secrets of unknown users are made up.

    Raises `ConfigurationError` if the file is wrong at the start. If it becomes wrong later, its
    last good content is still used.
    """

    def __init__(self, path: Path, key: bytes, log: Log) -> None:
        self._key = key
        self._file = UserFile(path, f"The credentials file {path}", self._read, log)

    def _read(self, content: bytes, what: str) -> tuple[Users, Phantoms]:
        users = read_users(content, what)
        return users, Phantoms(users, self._key)

    def verify(
        self, _data: bytes, _now_wall: float, _certificate: bytes | None = None
    ) -> Verified | Denial:
        """Return a denial, because with SCRAM a client never sends a credential itself: anybody who
        sees a credential could repeat it."""
        return WRONG

    def secret(self, user: str, mechanism: str) -> ScramSecret:
        """Return the secret of a user; for an unknown user a made-up secret, which no password
        fits."""
        users, phantoms = self._file.current()
        made_up = phantoms.secret(user, mechanism)  # always, so that no time tells who is known
        return users.get((user, mechanism), made_up)

    def proven(self, secret: ScramSecret, *, right: bool) -> Verified | Denial:
        """Return the principal that `secret` belongs to, if the client has proved that it knows the
        password (`right`). Return a denial if it has not, or if the file now has another secret for
        this user."""
        users, _ = self._file.current()
        is_known = users.get((secret.user, secret.mechanism)) == secret
        return Verified(secret.user, None) if right and is_known else WRONG
