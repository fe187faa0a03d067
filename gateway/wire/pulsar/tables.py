"""Which commands stop, in which direction, and why: the code's half of docs/protocols/pulsar.md.

All other known commands pass without being looked at. A test holds the page and this table
together.
"""

from __future__ import annotations

from gateway.wire.contract import Direction
from gateway.wire.pulsar.addresses import HIDDEN
from gateway.wire.pulsar.frames import Kind, actions

COUNTED = {
    Direction.TO_BROKER: frozenset({Kind.SEND}),
    Direction.TO_CLIENT: frozenset({Kind.MESSAGE, Kind.SEND_RECEIPT}),
}
"""Walked and counted as they pass."""

STOPS = {
    Direction.TO_BROKER: frozenset(
        {
            Kind.CONNECT,  # a second one
            Kind.PRODUCER,
            Kind.SUBSCRIBE,
            Kind.CLOSE_PRODUCER,
            Kind.CLOSE_CONSUMER,
            Kind.UNSUBSCRIBE,
            Kind.LOOKUP,
            Kind.PARTITIONED_METADATA,
            Kind.AUTH_RESPONSE,
            Kind.END_TXN,
        }
    ),
    Direction.TO_CLIENT: HIDDEN
    | {
        Kind.PRODUCER_SUCCESS,
        Kind.SUCCESS,
        Kind.AUTH_CHALLENGE,
        Kind.TOPIC_MIGRATED,
    },
}


PACED = frozenset({Kind.PARTITIONED_METADATA})
"""Stop only where rules limit how often lookups are made."""


def scanner_actions(
    direction: Direction, *, unknown_pass: bool, paced: bool = False
) -> tuple[int, ...]:
    """What a scanner of this direction does with each command type."""
    stops = STOPS[direction] if paced else STOPS[direction] - PACED
    return actions(COUNTED[direction], stops, unknown_pass=unknown_pass)


ACTIONS = {
    (direction, unknown_pass): scanner_actions(direction, unknown_pass=unknown_pass)
    for direction in Direction
    for unknown_pass in (False, True)
}
"""Made once, shared by all pairs."""

PACED_ACTIONS = {
    unknown_pass: scanner_actions(Direction.TO_BROKER, unknown_pass=unknown_pass, paced=True)
    for unknown_pass in (False, True)
}
"""To the broker, where rules limit how often lookups are made."""
