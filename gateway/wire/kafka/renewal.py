"""Shows a broker the credential again on an open connection, before the broker closes it (KIP-368).

The requests that show it are sent between the client's. Brokers close a connection that sends any
other request before they have accepted the credential, so the client's requests wait that long.
"""

from __future__ import annotations

import math

from gateway.wire.contract import Credential, Denial
from gateway.wire.kafka.authenticating import (
    AUTHENTICATE_VERSION,
    HANDSHAKE_VERSION,
    NO_MECHANISM,
    NOT_ACCEPTED,
    OURS,
    lifetime_of,
)
from gateway.wire.kafka.in_flight import Asked
from gateway.wire.kafka.sasl import handshake
from gateway.wire.kafka.sasl.client import Proving
from gateway.wire.kafka.sasl.client import client as proving
from gateway.wire.kafka.sasl.handshake import SASL_AUTHENTICATE, SASL_HANDSHAKE

SHARE = 0.85
"""Of the time that a broker gives, after which a credential is shown again: as Java does it."""

LEAST = 1.0
"""Seconds between two times, however short a broker's time is."""


def due_in(lifetime: float) -> float:
    """Return after how many seconds a credential is shown again that is good for so many."""
    return max(LEAST, SHARE * lifetime)


class Renewal:
    """Shows a credential once more. `lifetime`: seconds for which the broker accepts it; known at
    the end. Methods raise `PeerError` if the broker violates the protocol."""

    __slots__ = ("_correlation", "_mechanism", "_proving", "lifetime")

    def __init__(self, credential: Credential, mechanism: str, correlation: int) -> None:
        self._mechanism = mechanism
        self._proving: Proving = proving(mechanism, credential)
        self._correlation = correlation
        self.lifetime = math.inf

    def begin(self) -> tuple[Asked, bytes]:
        """Return the first request."""
        data = handshake.ask_for(self._mechanism, HANDSHAKE_VERSION, self._correlation, OURS)
        return self._asked(SASL_HANDSHAKE, HANDSHAKE_VERSION), data

    def answered(self, asked: Asked, frame: bytes) -> tuple[Asked, bytes] | Denial | None:
        """Return the next request, after the response to the last one; or why the broker does not
        accept the credential; None: it has."""
        if asked.key == SASL_HANDSHAKE:
            if handshake.read_offer(asked.version, frame).error:
                return NO_MECHANISM
            return self._show(next(self._proving))
        told = handshake.read_answer(asked.version, frame)
        if told.error:
            return NOT_ACCEPTED
        try:
            return self._show(self._proving.send(told.data))
        except StopIteration:
            self.lifetime = lifetime_of(told)
            return None

    def _show(self, token: bytes) -> tuple[Asked, bytes]:
        data = handshake.show(token, AUTHENTICATE_VERSION, self._correlation, OURS)
        return self._asked(SASL_AUTHENTICATE, AUTHENTICATE_VERSION), data

    def _asked(self, key: int, version: int) -> Asked:
        return Asked(key, version, self._correlation, is_own=True)
