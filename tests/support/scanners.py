"""The scanners of a session, and how a pump uses one that has a walker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.wire.contract import Scanner
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner

if TYPE_CHECKING:
    from gateway.compiled.walker import Walker


def scanners_of(session: PulsarSession) -> tuple[ToBrokerScanner, ToClientScanner]:
    to_broker, to_client = session.scanners
    assert isinstance(to_broker, ToBrokerScanner)
    assert isinstance(to_client, ToClientScanner)
    return to_broker, to_client


def scan_as_the_pump(scanner: Scanner, chunk: bytearray, start: int, end: int) -> int:
    """Have the walker of a scanner pass what it can, and the scanner judge the rest, as
    `compiled.plane.Mover` does; a scanner without one judges all."""
    walker: Walker | None = getattr(scanner, "walker", None)
    if walker is None:
        return scanner.scan(chunk, start, end)
    at = start + walker.owed
    if at < end:
        at = walker.pass_usual(chunk, at, end)
    walker.owed = max(0, at - end)
    return end if at >= end else scanner.scan(chunk, at, end)
