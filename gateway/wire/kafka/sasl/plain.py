"""PLAIN: a name and a password, as they are (RFC 4616).

The gateway verifies them by the method `basic`, whose data are `name:password`. A name with a colon
would become another name there, so nobody can have one.
"""

from __future__ import annotations

from typing import NamedTuple

from gateway.wire.contract import Credential, Principal
from gateway.wire.kafka.sasl.exchange import MALFORMED, Accepted, Exchange, Verifier

MECHANISM = "PLAIN"


class Shown(NamedTuple):
    """A name and a password, neither empty."""

    user: str
    password: bytes

    def __repr__(self) -> str:
        return f"Shown(user={self.user!r})"


def read(token: bytes) -> Shown | None:
    """Return what a client shows; None: malformed, or on behalf of somebody else."""
    parts = token.split(b"\0")
    if len(parts) != 3:  # on behalf of whom, name, password
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
    """Return the token of a client."""
    return b"\0" + user + b"\0" + password


def exchange(token: bytes, verifier: Verifier) -> Exchange:
    """Verify a client."""
    shown = read(token)
    if shown is None:
        return MALFORMED
    credential = Credential("basic", shown.user.encode() + b":" + shown.password)
    found = yield from verifier.verify(credential)
    return Accepted(found, credential=credential) if isinstance(found, Principal) else found
