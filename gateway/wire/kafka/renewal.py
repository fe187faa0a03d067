"""Reauthentication of the gateway at a broker, before the broker closes the connection (KIP-368).

The gateway sends its own requests between those of the client. From the first of these to the
broker's last response, any other request would make the broker close the connection. So the
client's requests wait until the broker has accepted the credential.
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
    """Return the seconds until the gateway should reauthenticate. `lifetime`: seconds for which the
    broker accepts the credential."""
    return max(LEAST, SHARE * lifetime)


class Renewal:
    """One reauthentication of the gateway at a broker. `lifetime`: seconds for which the broker
    accepts the credential, once it has responded. Methods raise `PeerError` if the broker violates
    the protocol."""

    __slots__ = ("_correlation", "_mechanism", "_proving", "lifetime")

    def __init__(self, credential: Credential, mechanism: str, correlation: int) -> None:
        self._mechanism = mechanism
        self._proving: Proving = proving(mechanism, credential)
        self._correlation = correlation
        self.lifetime = math.inf

    def begin(self) -> tuple[Asked, bytes]:
        """Return the first request to send: its entry for the connection's in-flight requests, and
        its frame."""
        data = handshake.ask_for(self._mechanism, HANDSHAKE_VERSION, self._correlation, OURS)
        return self._request(SASL_HANDSHAKE, HANDSHAKE_VERSION), data

    def answered(self, request: Asked, frame: bytes) -> tuple[Asked, bytes] | Denial | None:
        """Take the broker's response (`frame`) to the last request (`request`). Return the next
        request to send, as `begin` does; a denial if the broker does not accept the credential;
        None if the broker has accepted it."""
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
