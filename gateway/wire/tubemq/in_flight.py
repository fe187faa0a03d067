"""Requests that wait for their replies."""

from __future__ import annotations

import math
from typing import NamedTuple

from gateway.wire.account import Account
from gateway.wire.services import Tokens
from gateway.wire.subject import Subject
from gateway.wire.tubemq.progress import Partition

MOST = 10_000
"""Requests of one connection without a reply. More are not read before some have theirs."""

UNDATED = math.inf
"""When a request is forgotten that passed the scanner, which has no clock: a sweep dates it."""


class Asked(NamedTuple):
    """A request that waits for its reply.

    `client`: who asks. `account`: of what it sends, or asks for. `patience`: seconds until the
    request may be forgotten. `tokens`: those that the client gets with the reply. `partition`:
    whose offsets the reply tells. `until`: when it is forgotten, as nobody waits for it any more.
    """

    method: int
    client: Subject
    account: Account | None
    patience: float
    tokens: Tokens | None
    partition: Partition | None
    until: float = UNDATED


InFlight = dict[int, Asked]
"""The requests of one connection, by their serial numbers."""


def date(in_flight: InFlight, now: float) -> None:
    """Say of requests that have passed the scanner when they may be forgotten."""
    for serial, asked in in_flight.items():
        if asked.until == UNDATED:
            in_flight[serial] = asked._replace(until=now + asked.patience)
