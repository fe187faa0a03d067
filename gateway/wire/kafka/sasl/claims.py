"""The name that a client claims towards its broker, on listeners where the gateway forwards SASL to
brokers unchanged.

The gateway does not verify this name. Once the broker has accepted the client, rules, limits and
metrics use the name as the client's principal.
"""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode

from gateway.wire.kafka.sasl import bearer, plain, scram
from gateway.wire.scram import SCRAM_HASHES

ROUNDS = {plain.MECHANISM: 1, bearer.MECHANISM: 1, **dict.fromkeys(SCRAM_HASHES, 2)}
"""By mechanism: the number of tokens that a client sends until the broker has accepted it."""

LONGEST_NAME = 512
"""The most characters of a claimed name that are kept; it is shown in metrics and logs."""


class Claim:
    """One client's claim of a name. `mechanism`: the SASL mechanism that the client has chosen.
    `bare`: the tokens are not inside SaslAuthenticate requests. `rounds`: how many tokens the
    client has sent. `responses`: how many responses to tokens the broker has sent. `is_accepted`:
    the broker has accepted the client, or its last token if the gateway does not know how many
    follow. A client may send its next token before the broker has responded to the one before, so
    tokens alone do not prove that the broker accepts the client."""

    __slots__ = ("_name", "bare", "is_accepted", "mechanism", "responses", "rounds")

    def __init__(self, mechanism: str, *, bare: bool) -> None:
        self.mechanism = mechanism
        self.bare = bare
        self.rounds = self.responses = 0
        self.is_accepted = False
        self._name = ""

    @property
    def is_known(self) -> bool:
        """Return whether the gateway knows how many tokens a client sends in this mechanism."""
        return self.mechanism in ROUNDS

    @property
    def is_over(self) -> bool:
        """Return whether the client has sent all its tokens."""
        return self.rounds >= ROUNDS.get(self.mechanism, 0)

    def add(self, token: bytes) -> None:
        """Count the client's next token. The first token has the name that the client claims."""
        self.rounds += 1
        if self.rounds == 1:
            self._name = _claimed(self.mechanism, token)[:LONGEST_NAME]

    @property
    def is_answered(self) -> bool:
        """Return whether the broker has responded to all tokens of the mechanism."""
        return self.responses >= ROUNDS.get(self.mechanism, 0)

    def accepted(self, data: bytes) -> str:
        """Count the broker's next response, which is not an error. `data`: the broker's token in
        it. Return the client's name if the broker has now accepted the client; empty if it has not,
        or if the name is unknown."""
        self.responses += 1
        refused = self.mechanism == bearer.MECHANISM and data
        self.is_accepted = self.is_answered and not refused
        return self._name if self.is_accepted else ""


def _claimed(mechanism: str, token: bytes) -> str:
    """Return the name in a client's first token; empty if there is none that can be read."""
    if mechanism == plain.MECHANISM:
        shown = plain.read(token)
        return "" if shown is None else shown.user
    if mechanism == bearer.MECHANISM:
        bears = bearer.read(token)
        return "" if bears is None else _subject(bears.token)
    if mechanism in SCRAM_HASHES:
        first = scram.read_first(token)
        return "" if first is None else first.user
    return ""


def _subject(token: str) -> str:
    """Return the subject of a JSON Web Token that is not verified; empty if it has none."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return ""
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else ""
