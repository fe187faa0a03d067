"""Makes the two scanners of a connection. Only this module knows whether they are compiled or
pure."""

from __future__ import annotations

from gateway.compiled import COMPILED
from gateway.wire.services import Services
from gateway.wire.tubemq.bringing import Bringing
from gateway.wire.tubemq.in_flight import InFlight
from gateway.wire.tubemq.replies import ReplyScanner
from gateway.wire.tubemq.requests import RequestScanner

if COMPILED:
    from gateway.wire.tubemq.compiled import CompiledReplies


def directions(
    largest: tuple[int, int], in_flight: InFlight, services: Services
) -> tuple[RequestScanner, ReplyScanner]:
    """Return the scanner of requests and the scanner of replies. `largest`: the `largest` of each
    scanner, in bytes; see `BlockScanner`."""
    requests = RequestScanner(largest[0], in_flight)
    if COMPILED:
        return requests, CompiledReplies(largest[1], in_flight, services)
    return requests, ReplyScanner(largest[1], in_flight, Bringing(in_flight, services))
