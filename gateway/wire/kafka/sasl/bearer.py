"""OAUTHBEARER: a token that an issuer has signed (RFC 7628, KIP-255).

The gateway verifies it by the method `token`. Who is refused learns so by a challenge, answers it
by a byte, and only then is the authentication over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from gateway.wire.contract import Credential, Principal
from gateway.wire.kafka.sasl import names
from gateway.wire.kafka.sasl.exchange import (
    MALFORMED,
    Accepted,
    Exchange,
    Verifier,
    challenged,
)

MECHANISM = "OAUTHBEARER"

REFUSED = b'{"status":"invalid_token"}'
"""What a client is told whose token is refused, whatever the reason."""

UNDERSTOOD = b"\x01"
"""How clients answer that."""

_FIRST = re.compile(
    rf"[ny],(?:a=(?P<behalf>{names.NAME}))?,"
    r"\x01(?P<pairs>(?>(?:[A-Za-z]++=[\x20-\x7e\t\r\n]++\x01)*))\x01"
)
_AUTH = re.compile(r"(?i:bearer) +([-._~+/A-Za-z0-9]++=*)")


class Shown(NamedTuple):
    """What a client shows. `behalf`: the name that it says it has; empty: none. `extensions`: what
    else it says of itself (KIP-342)."""

    token: str
    behalf: str
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Shown(behalf={self.behalf!r})"


def read(token: bytes) -> Shown | None:
    """Return what a client shows; None: it is malformed."""
    try:
        found = _FIRST.fullmatch(token.decode())
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    pairs: dict[str, str] = {}
    for pair in found["pairs"].split("\x01")[:-1]:
        key, _, value = pair.partition("=")
        if key in pairs:
            return None
        pairs[key] = value
    auth = _AUTH.fullmatch(pairs.pop("auth", ""))
    if auth is None:
        return None
    return Shown(auth[1], names.read(found["behalf"] or ""), pairs)


def written(token: bytes, extensions: Mapping[str, str]) -> bytes:
    """Return the token of a client."""
    pairs = "".join(f"{key}={value}\x01" for key, value in extensions.items())
    return b"n,,\x01auth=Bearer " + token + b"\x01" + pairs.encode() + b"\x01"


def exchange(token: bytes, verifier: Verifier) -> Exchange:
    """Verify a client."""
    shown = read(token)
    if shown is None:
        return MALFORMED
    credential = Credential("token", shown.token.encode())
    found = yield from verifier.verify(credential)
    if isinstance(found, Principal):
        if shown.behalf in ("", found.name):
            return Accepted(found, credential=credential, extensions=shown.extensions)
        found = MALFORMED
    yield from challenged(REFUSED)
    return found
