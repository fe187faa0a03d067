"""Signatures by which users of TubeMQ prove their passwords, and tokens that replace signatures.

A client signs its name, a time and a random number with its password, and shows `name time number
signature`. The gateway then gives it two tokens, so that the client need not sign each request:

- a *text*, `name end t:code`, for requests that have room for a text
- a *number* of 63 bits, for requests that do not: 15 bits of a hash of the name, 48 bits of a code

The key of both codes is the password. So all gateways with the same file of users accept each
other's tokens, tokens become invalid when the password changes, and a token reveals no more about
the password than the signature did. A number is valid for one client id, which the client chooses.

Source of the signature: SimpleCertificateMasterHandler of Apache InLong TubeMQ.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from gateway.errors import ConfigurationError
from gateway.identity.names import is_proper
from gateway.wire.services import Tokens

TOKEN_LIFE = 900.0
"""Seconds for which a text is valid. Clients get a new one with each heartbeat, every 13 s."""

_PERIOD = 300
"""Seconds of a period. A number is valid in the period in which it was made and in the next two."""

_PERIODS = 3

_CODE_BITS = 48
"""Bits of a number's code. A million guesses a second for 15 minutes find one of the three valid
codes with a chance of 1 in 100,000."""

_NAME_BITS = 15

_MARK = "t:"
"""What tells a text from a signature, which has no colon."""

_CODE_SIZE = 24
"""Bytes of a text's code."""

_MAKE = "a line is name:password"

Users = Mapping[str, bytes]
"""Passwords by name."""


class Signed(NamedTuple):
    """What a client shows: its name, a time, a random number, and its signature of these three.
    `at`: the time, in milliseconds since 1970, by the client's clock."""

    user: str
    at: int
    number: str
    signature: str


class Text(NamedTuple):
    """A token as text: the name of a user, the time until which the token is valid, in seconds
    since 1970, and a code."""

    user: str
    until: int
    code: str


def read_users(content: bytes, what: str) -> Users:
    """Return the passwords in a users file, by user name. Raises `ConfigurationError`, whose text
    begins with `what` (a description of the file), and has none of the passwords."""
    users: dict[str, bytes] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, password = line.partition(":")
        if not is_proper(name) or not password:
            raise ConfigurationError(f"{what}, line {number}, is not name:password")
        if name in users:
            raise ConfigurationError(f"{what}, line {number}, has a name that is there before")
        users[name] = password.encode()
    if not users:
        raise ConfigurationError(f"{what} names nobody; {_MAKE}")
    return users


def signature(password: bytes, user: str, at: int, number: str) -> str:
    """Return the signature that a client with this password makes of its name, a time (`at`: in
    milliseconds since 1970) and a random number."""
    code = hmac.digest(password, f"{user}{at}{number}".encode(), "sha1")
    return quote(b64encode(code).decode(), safe="")


def read(shown: str) -> Signed | Text | None:
    """Parse the credential that a client presents. Return a `Signed` (signature) or a `Text`
    (token); None if it is neither."""
    user, _, rest = shown.rpartition(" ")
    if rest.startswith(_MARK):
        user, _, until = user.rpartition(" ")
        return Text(user, int(until), rest) if _is_number(until) else None
    parts = shown.rsplit(" ", 3)
    if len(parts) != 4 or not _is_number(parts[1]) or not _is_number(parts[2]):
        return None
    return Signed(parts[0], int(parts[1]), parts[2], parts[3])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def is_signed(shown: Signed, password: bytes) -> bool:
    """Return whether a signature was made with this password."""
    right = signature(password, shown.user, shown.at, shown.number)
    return hmac.compare_digest(right.encode(), shown.signature.encode())


def is_made_here(shown: Text, password: bytes) -> bool:
    """Return whether a gateway has issued this token to the user who has this password."""
    return hmac.compare_digest(_text(password, *shown[:2]).encode(), shown.code.encode())


def tokens(user: str, password: bytes, client: str, now: float) -> Tokens:
    """Return two new tokens for a user, a text and a number. `client`: the client id for which the
    number is valid. `now`: wall-clock seconds."""
    until = int(now + TOKEN_LIFE)
    text = f"{user} {until} {_text(password, user, until)}"
    return Tokens(text, _number(user, password, client, int(now) // _PERIOD))


def is_number_of(number: int, user: str, password: bytes, client: str, now: float) -> bool:
    """Return whether a number is a valid token of this user for this client id. `now`: wall-clock
    seconds."""
    period = int(now) // _PERIOD
    return any(
        hmac.compare_digest(
            number.to_bytes(8), _number(user, password, client, period - ago).to_bytes(8)
        )
        for ago in range(_PERIODS)
    )


def may_be(number: int) -> int:
    """Return those 15 bits of a numeric token that are a hash of its user's name (see
    `short`)."""
    return number >> _CODE_BITS


def short(user: str) -> int:
    """Return 15 bits of a hash of a user's name. A numeric token contains these bits, by which the
    gateway finds the user."""
    return int.from_bytes(hashlib.sha256(user.encode()).digest()[:2]) >> (16 - _NAME_BITS)


def _text(password: bytes, user: str, until: int) -> str:
    code = hmac.digest(password, f"gateway text\0{until}\0{user}".encode(), "sha256")
    return _MARK + urlsafe_b64encode(code[:_CODE_SIZE]).decode()


def _number(user: str, password: bytes, client: str, period: int) -> int:
    said = f"gateway number\0{period}\0{user}\0{client}".encode()
    code = int.from_bytes(hmac.digest(password, said, "sha256")[: _CODE_BITS // 8])
    return short(user) << _CODE_BITS | code
