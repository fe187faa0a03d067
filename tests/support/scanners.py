"""Each implementation of scanners, those of a session, and how a pump uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.compiled import COMPILED
from gateway.wire.contract import Scanner
from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner
from gateway.wire.pulsar.session import PulsarSession

if TYPE_CHECKING:
    from gateway.compiled.counters import Walker

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
