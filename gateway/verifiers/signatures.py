"""Verifies signatures of TubeMQ's users, and issues tokens that replace them (method `signature`).

`gateway.identity.signature` defines signatures and tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gateway.config import model
from gateway.identity import signature
from gateway.identity.signature import Signed, Text, Users
from gateway.identity.verified import Verified
from gateway.verifiers import Log, Needs
from gateway.verifiers.users import UserFile
from gateway.wire.contract import Denial, Refusal
from gateway.wire.services import NUMBER_SHOWN, Tokens

WRONG = Denial(Refusal.UNAUTHENTICATED, "name or signature not accepted")
LATE = Denial(Refusal.UNAUTHENTICATED, "signed at another time than now")
EXPIRED = Denial(Refusal.UNAUTHENTICATED, "the token has expired")

_NOBODY = b"\0"
"""Stands in for the password of an unknown user, so that verifying takes as long as for a known
one."""


class Known(NamedTuple):
    """The users of a file. `users`: passwords by user name. `by_short`: user names by their hash
    (`signature.short`)."""

    users: Users
    by_short: Mapping[int, tuple[str, ...]]


def make_verifier(settings: model.Signature, needs: Needs) -> SignatureVerifier:
    """Return the verifier for these settings. Raises `ConfigurationError`."""
    return SignatureVerifier(settings.users_file, settings.window, needs.log)


class SignatureVerifier:
    """Verifies signatures by the passwords in a file, which is read again when it changes.
    `window`: seconds by which the time in a signature may differ from the gateway's time.

    Raises `ConfigurationError` if the file is wrong at the start. If it becomes wrong later, its
    last good content is still used.
    """

    def __init__(self, path: Path, window: float, log: Log) -> None:
        self._window = window
        self._file = UserFile(path, f"The users file {path}", _read, log)

    def verify(
        self, data: bytes, now_wall: float, _certificate: bytes | None = None
    ) -> Verified | Denial:
        """Return the principal that a signature or a token proves, or a denial. If the token is a
        text, the result also says when it expires. `data`: the signature or token."""
        known = self._file.current()
        if data.startswith(NUMBER_SHOWN):
            return self._by_number(known, data, now_wall)
        shown = signature.read(data.decode(errors="replace"))
        if shown is None:
            return WRONG
        password = known.users.get(shown.user, _NOBODY)
        if isinstance(shown, Text):
            if not signature.is_made_here(shown, password) or shown.user not in known.users:
                return WRONG
            return Verified(shown.user, shown.until) if now_wall < shown.until else EXPIRED
        return self._by_signature(known, shown, password, now_wall)

    def _by_signature(
        self, known: Known, shown: Signed, password: bytes, now_wall: float
    ) -> Verified | Denial:
        if not signature.is_signed(shown, password) or shown.user not in known.users:
            return WRONG
        is_now = abs(now_wall - shown.at / 1000) <= self._window
        return Verified(shown.user, None) if is_now else LATE

    def _by_number(self, known: Known, data: bytes, now_wall: float) -> Verified | Denial:
        number, client = int.from_bytes(data[1:9]), data[9:].decode(errors="replace")
        for user in known.by_short.get(signature.may_be(number), ()):
            if signature.is_number_of(number, user, known.users[user], client, now_wall):
                return Verified(user, None)
        return WRONG

    def tokens(self, data: bytes, client: str, now_wall: float) -> Tokens | None:
        """Return new tokens for a client; None if its user is no longer in the file. `data`: the
        signature or text token by which the client was accepted. `client`: the client id."""
        shown = signature.read(data.decode(errors="replace"))
        users = self._file.current().users
        if shown is None or shown.user not in users:
            return None
        return signature.tokens(shown.user, users[shown.user], client, now_wall)


def _read(content: bytes, what: str) -> Known:
    users = signature.read_users(content, what)
    by_short: dict[int, tuple[str, ...]] = {}
    for user in users:
        by_short[signature.short(user)] = (*by_short.get(signature.short(user), ()), user)
    return Known(users, by_short)
