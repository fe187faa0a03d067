"""The state machine of producers and consumers, as a table.

An *incarnation* is a producer or consumer id as one request opened it. `NEXT` maps events to the
state that follows; an event that a state does not list changes nothing. An id without a state is
not open: it was never opened, was refused, or was closed by either side. docs/protocols/states.md
has what becomes of the frames of each event; `make metrics` writes it by playing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class State(Enum):
    """The state of an incarnation.

    `OPENING`: PRODUCER or SUBSCRIBE was forwarded. `REOPENING`: the same, in place of an
    incarnation that the broker had not closed yet; the broker's next close may mean the earlier
    one. `RENEWING`: SUBSCRIBE was forwarded for an open consumer; the broker goes on with the
    consumer whether it accepts or refuses. `QUEUED`: a producer waits for exclusive access
    (PRODUCER_SUCCESS with `producer_ready` false). `OPEN`. `UNSUBSCRIBING`, `CLOSING`: the client's
    UNSUBSCRIBE or CLOSE was forwarded. `CLOSED`: the broker closed it; its client still gets
    receipts, and later the close. `ABANDONED`: its client knows that it is over, and the broker may
    still have it; a producer has no account any more, and a consumer's messages still count.
    `RESETTING`: the gateway makes the client open it again; receipts are awaited. `LEAVING`: the
    gateway drains; receipts are awaited. `MOVING`: the gateway has closed it at the broker, and
    awaits the response.
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
    """An event in the life of an incarnation."""

    SUBSCRIBED_AGAIN = auto()  # the client subscribes an open consumer again
    OPENED = auto()  # the broker accepts
    QUEUED = auto()  # the broker accepts a producer that has to wait
    UNSUBSCRIBED = auto()  # the client's UNSUBSCRIBE
    KEPT = auto()  # the broker refuses UNSUBSCRIBE for a consumer that it has open
    KEPT_UNOPENED = auto()  # the same, for a consumer that it is still opening
    CLOSED = auto()  # the client's CLOSE
    CLOSED_EARLY = auto()  # the broker's close, before all receipts
    ONE_BEFORE_CLOSED = auto()  # the broker's close of the incarnation before this one
    ABANDONED = auto()  # the client is told that it is gone; the broker may not know
    RESET = auto()  # the client must open it again, because of a limit
    LEFT = auto()  # the gateway stops
    MOVED = auto()  # the gateway closes it at the broker


PENDING = frozenset({State.OPENING, State.REOPENING, State.RENEWING, State.QUEUED})
"""States that await the broker's response to a request that opens the incarnation."""

REPLACING = frozenset({State.REOPENING, State.RENEWING})
"""The same, while the broker may have the previous incarnation."""

RESETTABLE = frozenset({State.OPEN, State.RESETTING})

SETTLED = frozenset({State.QUEUED, *RESETTABLE})
"""The broker has the incarnation, and neither side is closing it."""

GIVEN_UP = frozenset({State.UNSUBSCRIBING, State.CLOSING})
"""The client is closing the incarnation."""

ENDING = frozenset({*GIVEN_UP, State.CLOSED, State.ABANDONED, State.LEAVING, State.MOVING})
"""The incarnation is closed or being closed."""

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
"""The state that follows each state, by event."""
