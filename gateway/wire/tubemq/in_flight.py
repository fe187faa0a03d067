"""The in-flight requests of one connection, by serial number."""

from __future__ import annotations

import math
from typing import NamedTuple

from gateway.wire.account import Account
from gateway.wire.services import Tokens
from gateway.wire.subject import Subject
from gateway.wire.tubemq.clients import NONE, Own
from gateway.wire.tubemq.progress import Partition

MOST = 10_000
"""The most in-flight requests of one connection. More are not read before some have their
replies."""

UNDATED = math.inf
"""The expiry of a request that the scanner has passed, which has no clock: a sweep dates it."""


class Asked(NamedTuple):
    """An in-flight request: the gateway has sent it to the server, and the server has not replied
    yet.

    `client`: the client that sent it. `account`: the account of the topic to which it produces, or
    from which it consumes; else None. `patience`: seconds after which the request may be forgotten.
    `tokens`: the tokens to add to the reply. `partition`: the partition whose offsets the reply
    states. `until`: the time at which the request is forgotten, because the client no longer waits
    for the reply. `own`: the client and the group that the request names.
    """

    method: int
    client: Subject
    account: Account | None
    patience: float
    tokens: Tokens | None
    partition: Partition | None
    until: float = UNDATED
    own: Own = NONE


InFlight = dict[int, Asked]
"""The in-flight requests of one connection, by serial number."""


def date(in_flight: InFlight, now: float) -> None:
    """Set the expiry (`until`) of the requests that the scanner has added, because a scanner has no
    clock."""
    for serial, request in in_flight.items():
        if request.until == UNDATED:
            in_flight[serial] = request._replace(until=now + request.patience)
