"""OAUTHBEARER: a token that an issuer has signed (RFC 7628, KIP-255).

The gateway verifies such a token by its authentication method `token`. If it refuses the client, it
sends a challenge that says so. The client responds with one byte, and then the authentication is
over.
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
"""The challenge for a client whose token is refused, whatever the reason."""

UNDERSTOOD = b"\x01"
"""The client's response to that challenge."""

_FIRST = re.compile(
    rf"[ny],(?:a=(?P<behalf>{names.NAME}))?,"
    r"\x01(?P<pairs>(?>(?:[A-Za-z]++=[\x20-\x7e\t\r\n]++\x01)*))\x01"
)
_AUTH = re.compile(r"(?i:bearer) +([-._~+/A-Za-z0-9]++=*)")


class Shown(NamedTuple):
    """The first message of a client: its token, and what it sends with the token. `behalf`: the
    name that the client claims in the message's header; empty if none. `extensions`: further values
    that the client states about itself (KIP-342)."""

    token: str
    behalf: str
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Shown(behalf={self.behalf!r})"


def read(token: bytes) -> Shown | None:
    """Return the content of a client's first message; None if the message is malformed."""
    try:
        match = _FIRST.fullmatch(token.decode())
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    pairs: dict[str, str] = {}
    for pair in match["pairs"].split("\x01")[:-1]:
        key, _, value = pair.partition("=")
        if key in pairs:
            return None
        pairs[key] = value
    auth = _AUTH.fullmatch(pairs.pop("auth", ""))
    if auth is None:
        return None
    return Shown(auth[1], names.read(match["behalf"] or ""), pairs)


def written(token: bytes, extensions: Mapping[str, str]) -> bytes:
    """Return the first message of a client with this token and these extensions."""
    pairs = "".join(f"{key}={value}\x01" for key, value in extensions.items())
    return b"n,,\x01auth=Bearer " + token + b"\x01" + pairs.encode() + b"\x01"


def exchange(token: bytes, verifier: Verifier) -> Exchange:
    """Authenticate a client by OAUTHBEARER; see `exchange.Exchange`. `token`: the client's first
    message. `verifier`: verifies the token in it."""
    shown = read(token)
    if shown is None:
        return MALFORMED
    credential = Credential("token", shown.token.encode())
    outcome = yield from verifier.verify(credential)
    if isinstance(outcome, Principal):
        if shown.behalf in ("", outcome.name):
            return Accepted(outcome, credential=credential, extensions=shown.extensions)
        outcome = MALFORMED
    yield from challenged(REFUSED)
    return outcome
