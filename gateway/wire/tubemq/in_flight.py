"""The in-flight requests of one connection, by serial number."""

from __future__ import annotations

import math
from typing import NamedTuple

from gateway.wire.account import Account
from gateway.wire.services import Tokens
from gateway.wire.subject import Subject
from gateway.wire.tubemq.progress import Partition

MOST = 10_000
"""The most in-flight requests of one connection. More are not read before some have their
replies."""

UNDATED = math.inf
"""The expiry of a request that the scanner has passed, which has no clock: a sweep dates it."""


class Asked(NamedTuple):
    """An in-flight request: sent to the server, which has not replied yet.

    `client`: its sender. `account`: the one it produces to, or consumes from. `patience`: seconds
    after which it may be forgotten. `tokens`: those that the client gets with the reply.
    `partition`: the one whose offsets the reply states. `until`: the time at which it is forgotten,
    since the client does not wait for the reply any more.
    """

    method: int
    client: Subject
    account: Account | None
    patience: float
    tokens: Tokens | None
    partition: Partition | None
    until: float = UNDATED


InFlight = dict[int, Asked]
"""The in-flight requests of one connection, by serial number."""


def date(in_flight: InFlight, now: float) -> None:
    """Set the expiry of requests that the scanner has passed."""
    for serial, request in in_flight.items():
        if request.until == UNDATED:
            in_flight[serial] = request._replace(until=now + request.patience)
