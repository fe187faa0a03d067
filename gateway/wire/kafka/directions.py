"""Make the two scanners of a connection. Only this module knows which implementation scans."""

from __future__ import annotations

from gateway.compiled import COMPILED
from gateway.wire.kafka.answers import Answers
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.pending import Pending
from gateway.wire.kafka.requests import Requests
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import Throttle
from gateway.wire.kafka.watch import Watch
from gateway.wire.services import Services

if COMPILED:
    from gateway.wire.kafka.compiled import CompiledAnswers, CompiledRequests


def directions(
    services: Services,
    book: Book,
    pending: Pending,
    substitutes: Substitutes,
    throttle: Throttle,
    watch: Watch,
) -> tuple[Requests, Answers]:
    """Return the scanner of requests, and that of answers."""
    if COMPILED:
        return (
            CompiledRequests(book, pending, substitutes, throttle, watch),
            CompiledAnswers(services, book, pending, substitutes, throttle, watch),
        )
    return (
        Requests(book, pending, substitutes, throttle),
        Answers(services, book, pending, substitutes, throttle),
    )
