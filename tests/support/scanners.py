"""The scanners of a session with their state, for tests."""

from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner
from gateway.wire.pulsar.session import PulsarSession


def scanners_of(session: PulsarSession) -> tuple[ToBrokerScanner, ToClientScanner]:
    to_broker, to_client = session.scanners
    assert isinstance(to_broker, ToBrokerScanner)
    assert isinstance(to_client, ToClientScanner)
    return to_broker, to_client
