"""Reauthentication of the gateway at a broker, before the broker closes the connection (KIP-368).

Its requests are sent between the client's. A broker closes a connection on which any other request
comes before it has accepted the credential, so the client's requests wait that long.
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
"""The share of the credential's lifetime after which it is shown again, as Java does."""

LEAST = 1.0
"""The least seconds between two reauthentications, however short the lifetime is."""


def due_in(lifetime: float) -> float:
    """Return the seconds until reauthentication, for a credential that the broker accepts for
    `lifetime` seconds."""
    return max(LEAST, SHARE * lifetime)


class Renewal:
    """One reauthentication at a broker. `lifetime`: seconds for which the broker accepts the
    credential, known at the end. Methods raise `PeerError` if the broker violates the protocol."""

    __slots__ = ("_correlation", "_mechanism", "_proving", "lifetime")

    def __init__(self, credential: Credential, mechanism: str, correlation: int) -> None:
        self._mechanism = mechanism
        self._proving: Proving = proving(mechanism, credential)
        self._correlation = correlation
        self.lifetime = math.inf

    def begin(self) -> tuple[Asked, bytes]:
        """Return the first request, for the in-flight line, and its frame."""
        data = handshake.ask_for(self._mechanism, HANDSHAKE_VERSION, self._correlation, OURS)
        return self._request(SASL_HANDSHAKE, HANDSHAKE_VERSION), data

    def answered(self, request: Asked, frame: bytes) -> tuple[Asked, bytes] | Denial | None:
        """Take the broker's response to the last request. Return the next request with its frame;
        or why the broker does not accept the credential; or None once it has accepted it."""
        if request.key == SASL_HANDSHAKE:
            if handshake.read_offer(request.version, frame).error:
                return NO_MECHANISM
            return self._show(next(self._proving))
        response = handshake.read_answer(request.version, frame)
        if response.error:
            return NOT_ACCEPTED
        try:
            return self._show(self._proving.send(response.data))
        except StopIteration:
            self.lifetime = lifetime_of(response)
            return None

    def _show(self, token: bytes) -> tuple[Asked, bytes]:
        data = handshake.show(token, AUTHENTICATE_VERSION, self._correlation, OURS)
        return self._request(SASL_AUTHENTICATE, AUTHENTICATE_VERSION), data

    def _request(self, key: int, version: int) -> Asked:
        return Asked(key, version, self._correlation, is_own=True)
