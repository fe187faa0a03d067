"""The scanners of a session of Pulsar."""

from __future__ import annotations

from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner


def scanners_of(session: PulsarSession) -> tuple[ToBrokerScanner, ToClientScanner]:
    to_broker, to_client = session.scanners
    assert isinstance(to_broker, ToBrokerScanner)
    assert isinstance(to_client, ToClientScanner)
    return to_broker, to_client
