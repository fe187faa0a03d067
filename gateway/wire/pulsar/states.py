"""The state machine of producers and consumers, as a table.

An *incarnation* is one (id, request that opened it). `NEXT` says which state follows an event; an
event that is not listed for a state changes nothing. An id that is in no state is not open: it was
never opened, was refused, or was closed by either side. What is sent at each event stands in
docs/protocols/pulsar.md, whose tables a test holds to the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """Where an incarnation is.

    `OPENING`: PRODUCER or SUBSCRIBE was forwarded. `REOPENING`: the same, in place of an
    incarnation that the broker had not closed yet; the broker's next close may be meant for that
    one. `RENEWING`: SUBSCRIBE was forwarded for a consumer that is open; the broker goes on with it
    whether it says yes or no. `QUEUED`: a producer waits for exclusive access (PRODUCER_SUCCESS
    with `producer_ready` false). `OPEN`. `UNSUBSCRIBING`, `CLOSING`: the client's UNSUBSCRIBE or
    CLOSE was forwarded. `CLOSED`: the broker closed it; its client still gets receipts, and is told
    later. `ABANDONED`: its client knows that it is gone, and the broker may still have it; a
    producer has no account any more, and a consumer's messages still count. `RESETTING`: the client
    is to open it again, for the gateway's sake; receipts are awaited. `LEAVING`: the gateway stops;
    receipts are awaited. `MOVING`: the gateway has closed it at the broker, and awaits the answer.
    """

    OPENING = auto()
    REOPENING = auto()
    RENEWING = auto()
    QUEUED = auto()
    OPEN = auto()
    UNSUBSCRIBING = auto()
    CLOSING = auto()
    CLOSED = auto()
    ABANDONED = auto()
    RESETTING = auto()
    LEAVING = auto()
    MOVING = auto()


class Event(Enum):
    """What happens to an incarnation."""

    SUBSCRIBED_AGAIN = auto()  # the client subscribes an open consumer again
    OPENED = auto()  # the broker's yes
    QUEUED = auto()  # the broker's yes to a producer that has to wait
    UNSUBSCRIBED = auto()  # the client's UNSUBSCRIBE
    KEPT = auto()  # the broker's no to UNSUBSCRIBE, of a consumer that it has open
    KEPT_UNOPENED = auto()  # the same, of one that it is opening yet
    CLOSED = auto()  # the client's CLOSE
    CLOSED_EARLY = auto()  # the broker's close, before all receipts
    ONE_BEFORE_CLOSED = auto()  # the broker's close of the incarnation before this one
    ABANDONED = auto()  # the client is told that it is gone; the broker need not know
    RESET = auto()  # a limit has it opened again
    LEFT = auto()  # the gateway stops
    MOVED = auto()  # the gateway closes it at the broker


PENDING = frozenset({State.OPENING, State.REOPENING, State.RENEWING, State.QUEUED})
"""The broker's answer to a request that opens it is awaited."""

REPLACING = frozenset({State.REOPENING, State.RENEWING})
"""The same, while the broker may have the incarnation before."""

RESETTABLE = frozenset({State.OPEN, State.RESETTING})

SETTLED = frozenset({State.QUEUED, *RESETTABLE})
"""The broker has it, and nobody is closing it."""

GIVEN_UP = frozenset({State.UNSUBSCRIBING, State.CLOSING})
"""The client is closing it."""

ENDING = frozenset({*GIVEN_UP, State.CLOSED, State.ABANDONED, State.LEAVING, State.MOVING})
"""It is closed already, or on its way there."""

_ANY = frozenset(State)


def _to(state: State, before: frozenset[State]) -> Mapping[State, State]:
    return dict.fromkeys(before, state)


NEXT: Mapping[Event, Mapping[State, State]] = {
    Event.SUBSCRIBED_AGAIN: _to(State.RENEWING, frozenset({State.OPEN})),
    Event.OPENED: _to(State.OPEN, PENDING),
    Event.QUEUED: _to(State.QUEUED, PENDING),
    Event.UNSUBSCRIBED: _to(State.UNSUBSCRIBING, _ANY - GIVEN_UP),
    Event.KEPT: _to(State.OPEN, frozenset({State.UNSUBSCRIBING})),
    Event.KEPT_UNOPENED: _to(State.OPENING, frozenset({State.UNSUBSCRIBING})),
    Event.CLOSED: _to(State.CLOSING, _ANY - {State.CLOSED, State.CLOSING}),
    Event.CLOSED_EARLY: _to(State.CLOSED, frozenset({State.OPEN})),
    Event.ONE_BEFORE_CLOSED: _to(State.OPENING, frozenset({*PENDING, State.OPEN})),
    Event.ABANDONED: _to(State.ABANDONED, _ANY),
    Event.RESET: _to(State.RESETTING, RESETTABLE),
    Event.LEFT: _to(State.LEAVING, SETTLED),
    Event.MOVED: _to(State.MOVING, frozenset({*SETTLED, State.LEAVING})),
}
"""Which state follows which, by event."""
