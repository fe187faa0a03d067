"""PLAIN: a name and a password in clear text (RFC 4616).

The gateway verifies both by its authentication method `basic`, whose data are `name:password`.
There, a colon in the name would be read as the end of the name, so a token whose name has a colon
is malformed.
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.wire.contract import Credential, Principal
from gateway.wire.kafka.sasl.exchange import MALFORMED, Accepted, Exchange, Verifier

MECHANISM = "PLAIN"


class Shown(NamedTuple):
    """A name and a password from a client's token. Neither is empty."""

    user: str
    password: bytes

    def __repr__(self) -> str:
        return f"Shown(user={self.user!r})"


def read(token: bytes) -> Shown | None:
    """Return the name and password in a client's token; None if the token is malformed, or if the
    client wants to act for another user."""
    parts = token.split(b"\0")
    if len(parts) != 3:  # authorization identity, name, password
        return None
    behalf, name, password = parts
    if not name or not password or b":" in name or behalf not in (b"", name):
        return None
    try:
        password.decode()
        return Shown(name.decode(), password)
    except UnicodeDecodeError:
        return None


def written(user: bytes, password: bytes) -> bytes:
    """Return the token that a client sends for this name and password."""
    return b"\0" + user + b"\0" + password


def exchange(token: bytes, verifier: Verifier) -> Exchange:
    """Authenticate a client by PLAIN; see `exchange.Exchange`. `token`: the client's token.
    `verifier`: verifies the name and password in it."""
    shown = read(token)
    if shown is None:
        return MALFORMED
    credential = Credential("basic", shown.user.encode() + b":" + shown.password)
    outcome = yield from verifier.verify(credential)
    return Accepted(outcome, credential=credential) if isinstance(outcome, Principal) else outcome
