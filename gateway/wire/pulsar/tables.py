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
            Kind.MESSAGE,  # one that a client says
            Kind.PRODUCER,
            Kind.SUBSCRIBE,
            Kind.CLOSE_PRODUCER,
            Kind.CLOSE_CONSUMER,
            Kind.UNSUBSCRIBE,
            Kind.LOOKUP,
            Kind.AUTH_RESPONSE,
            Kind.END_TXN,
        }
    ),
    Direction.TO_CLIENT: HIDDEN
    | {
        Kind.CONNECTED,  # a second one
        Kind.SEND,  # one that a broker says
        Kind.PRODUCER_SUCCESS,
        Kind.SUCCESS,
        Kind.AUTH_CHALLENGE,
        Kind.TOPIC_MIGRATED,
    },
}


LIMITS = frozenset({Kind.FLOW, Kind.PARTITIONED_METADATA})
"""What else stops towards brokers where limits may hold."""


def scanner_actions(direction: Direction, *, unknown_pass: bool) -> tuple[int, ...]:
    """What a scanner of this direction does with each command type."""
    return actions(COUNTED[direction], STOPS[direction], unknown_pass=unknown_pass)


ACTIONS = {
    (direction, unknown_pass): scanner_actions(direction, unknown_pass=unknown_pass)
    for direction in Direction
    for unknown_pass in (False, True)
}
"""Made once, shared by all pairs."""

LIMITED = {
    (Direction.TO_BROKER, unknown_pass): actions(
        COUNTED[Direction.TO_BROKER],
        STOPS[Direction.TO_BROKER] | LIMITS,
        unknown_pass=unknown_pass,
    )
    for unknown_pass in (False, True)
}
"""The same where limits may hold."""
