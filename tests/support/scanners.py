"""The scanners of Pulsar: each implementation of them, and those of a session with their state."""

from gateway.compiled import COMPILED
from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner
from gateway.wire.pulsar.session import PulsarSession

Implementation = tuple[str, type[ToBrokerScanner], type[ToClientScanner]]

PURE: Implementation = ("", ToBrokerScanner, ToClientScanner)


def _implementations() -> tuple[Implementation, ...]:
    if not COMPILED:
        return (PURE,)
    from gateway.wire.pulsar.compiled import CompiledToBrokerScanner, CompiledToClientScanner

    return PURE, (", compiled", CompiledToBrokerScanner, CompiledToClientScanner)


IMPLEMENTATIONS = _implementations()
"""Those that this installation has, by what a test's name ends in."""


def scanners_of(session: PulsarSession) -> tuple[ToBrokerScanner, ToClientScanner]:
    to_broker, to_client = session.scanners
    assert isinstance(to_broker, ToBrokerScanner)
    assert isinstance(to_client, ToClientScanner)
    return to_broker, to_client
