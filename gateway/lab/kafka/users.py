"""Logins by SASL: PLAIN with passwords, and OAUTHBEARER with unsecured tokens.

Sources: RFC 4616 (PLAIN), RFC 7628 (OAUTHBEARER), KIP-255 (unsecured tokens in Kafka).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gateway.lab.kafka.codes import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"

LONGEST_MESSAGE = 64 * 1024
"""Bytes of a login's message; tokens have some kilobytes."""

DENIED = "Authentication failed: invalid credentials"
"""The same text for a wrong password and for a user that does not exist."""

_INVALID_TOKEN = b'{"status":"invalid_token"}'
_PARTS_OF_PLAIN = 3
_PARTS_OF_TOKEN = 3


class Outcome(NamedTuple):
    """The result of one message of a login: a reply if the login goes on, a principal if it has
    succeeded, or an error. `until`: when the token expires, in seconds of wall time; 0: never."""

    reply: bytes = b""
    principal: str = ""
    until: float = 0.0
    error: Error = Error.NONE


_FAILED = Outcome(error=Error.SASL_AUTHENTICATION_FAILED)


class Exchange(Protocol):
    """A login in progress, with one SASL mechanism."""

    def step(self, message: bytes, now: float) -> Outcome:
        """Check the client's next message of the login. `now`: wall time in seconds."""


class Users:
    """The logins that brokers accept. `passwords`: by user name; empty: PLAIN is not offered.
    `unsecured_tokens`: a token without a signature logs in as the subject that it states. If
    neither is set, clients need no login.

    `lifetime`: seconds after which clients must reauthenticate; 0: never.
    """

    def __init__(
        self,
        passwords: Mapping[str, str] | None = None,
        *,
        unsecured_tokens: bool = False,
        lifetime: float = 0.0,
    ) -> None:
        self._passwords = dict(passwords or {})
        self._exchanges: dict[str, Callable[[], Exchange]] = {}
        if self._passwords:
            self._exchanges[PLAIN] = lambda: _Plain(self._passwords)
        if unsecured_tokens:
            self._exchanges[OAUTHBEARER] = _Bearer
        self.lifetime = lifetime

    @property
    def are_required(self) -> bool:
        """Return whether clients have to log in."""
        return bool(self._exchanges)

    @property
    def listener(self) -> str:
        """Return the security protocol of the brokers' listeners: `SASL_PLAINTEXT` or
        `PLAINTEXT`."""
        return "SASL_PLAINTEXT" if self.are_required else "PLAINTEXT"

    @property
    def mechanisms(self) -> list[str]:
        return list(self._exchanges)

    def begin(self, mechanism: str) -> Exchange | None:
        """Begin a login with a SASL mechanism, and return it; None if the mechanism is not
        offered."""
        make = self._exchanges.get(mechanism)
        return make() if make else None


class _Plain:
    """A login by name and password, which is one message."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def step(self, message: bytes, now: float) -> Outcome:
        parts = message.split(b"\0")
        if len(message) > LONGEST_MESSAGE or len(parts) != _PARTS_OF_PLAIN:
            return _FAILED
        speaking_as, name, password = parts
        user = name.decode(errors="replace")
        known = self._passwords.get(user)
        # A user that does not exist takes as long as one that does.
        is_right = hmac.compare_digest(password, (known or "").encode())
        if known is None or not is_right or speaking_as not in (b"", name):
            return _FAILED
        return Outcome(principal=user)


class _Bearer:
    """A login by token: one message, or after a bad one a second that ends it."""

    def __init__(self) -> None:
        self._has_failed = False

    def step(self, message: bytes, now: float) -> Outcome:
        if self._has_failed or len(message) > LONGEST_MESSAGE:
            return _FAILED
        claims = _claims(message)
        subject, until = claims.get("sub"), claims.get("exp")
        if isinstance(subject, str) and subject and isinstance(until, int | float) and until > now:
            return Outcome(principal=subject, until=until)
        self._has_failed = True
        return Outcome(reply=_INVALID_TOKEN)


def _claims(message: bytes) -> dict[str, object]:
    """Return the claims of an unsecured token in the first message of OAUTHBEARER; empty if there
    is none."""
    for pair in message.split(b"\1")[1:]:
        name, _, value = pair.partition(b"=")
        scheme, _, token = value.partition(b" ")
        parts = token.split(b".")
        if name == b"auth" and scheme.lower() == b"bearer" and len(parts) == _PARTS_OF_TOKEN:
            head, claims = _decoded(parts[0]), _decoded(parts[1])
            return claims if head.get("alg") == "none" and not parts[2] else {}
    return {}


def _decoded(part: bytes) -> dict[str, object]:
    try:
        claims = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
