"""Make the two scanners of a connection. Only this module knows which implementation scans."""

from __future__ import annotations

from gateway.compiled import COMPILED
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.in_flight import InFlight
from gateway.wire.kafka.requests import Requests
from gateway.wire.kafka.responses import Responses
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.kafka.watch import Watch
from gateway.wire.services import Services

if COMPILED:
    from gateway.wire.kafka.compiled import CompiledRequests, CompiledResponses


def directions(
    services: Services,
    book: Book,
    in_flight: InFlight,
    substitutes: Substitutes,
    throttle: Throttle,
    watch: Watch,
) -> tuple[Requests, Responses]:
    """Return the scanner of requests, and that of responses."""
    if COMPILED:
        return (
            CompiledRequests(book, in_flight, substitutes, throttle, watch),
            CompiledResponses(services, book, in_flight, substitutes, throttle, watch),
        )
    return (
        Requests(book, in_flight, substitutes, throttle),
        Responses(services, book, in_flight, substitutes, throttle),
    )
