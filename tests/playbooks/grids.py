"""What becomes of a producer or consumer at each event in each state, by playing it.

`tests.docs.states` writes it into docs/protocols/states.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gateway.wire.account import Action

from .frames import (
    close_consumer,
    close_producer,
    error,
    message,
    migrated,
    producer,
    producer_success,
    queued,
    receipt,
    send,
    send_error,
    subscribe,
    success,
    unsubscribe,
)
from .script import Play

Said = Callable[[Play], str]
"""Has a peer say a frame; returns what became of it, in words."""

OPENING, LEAVING, CLOSING = 11, 12, 13
"""The requests of the incarnation that is played; the one before was opened by request 1."""


def by_client(frame: bytes) -> Said:
    return lambda play: play.client(frame).words


def by_broker(frame: bytes) -> Said:
    return lambda play: play.broker(frame).words


def many(*said: Said) -> Said:
    return lambda play: "".join(each(play) for each in said)


def our_close(answer: Callable[[int], bytes]) -> Said:
    """The broker answers a close of the gateway, if there is one."""

    return lambda play: play.broker(answer(play.our_close)).words


Alike = tuple[Said, ...]
"""Events that do the same in each state."""


def leave(play: Play) -> str:
    return play.leave().words


def reset(play: Play) -> str:
    if not play.services.admitted:
        return "nothing"
    step = play.reset()
    return "nothing" if step.effects is None else step.words or "wait"


OPENED_BEFORE = many(by_client(producer(1, request=1)), by_broker(producer_success(1)))
OPEN_PRODUCER = by_client(producer(1, request=OPENING))
CLOSE_PRODUCER = by_client(close_producer(1, request=CLOSING))
PRODUCER_READY = by_broker(producer_success(OPENING))

PRODUCER_STATES: dict[str, Said] = {
    "none": many(),
    "opening": OPEN_PRODUCER,
    "reopening": many(OPENED_BEFORE, OPEN_PRODUCER),
    "queued": many(OPEN_PRODUCER, by_broker(queued(OPENING))),
    "open": many(OPEN_PRODUCER, PRODUCER_READY),
    "closing": many(OPEN_PRODUCER, PRODUCER_READY, CLOSE_PRODUCER),
    "closed": many(OPEN_PRODUCER, PRODUCER_READY, by_client(send(1)), by_broker(close_producer(1))),
    "abandoned": many(OPENED_BEFORE, OPEN_PRODUCER, by_broker(error(OPENING))),
    "resetting": many(OPEN_PRODUCER, PRODUCER_READY, by_client(send(1)), reset),
    "leaving": many(OPEN_PRODUCER, PRODUCER_READY, by_client(send(1)), leave),
    "moving": many(OPEN_PRODUCER, PRODUCER_READY, leave),
}

CLOSED = by_broker(success(CLOSING)), by_broker(error(CLOSING))
OURS_CLOSED = our_close(success), our_close(error)

PRODUCER_EVENTS: dict[str, Alike] = {
    "client: PRODUCER": (by_client(producer(1, request=99)),),
    "client: SEND": (by_client(send(1)),),
    "client: CLOSE_PRODUCER": (CLOSE_PRODUCER,),
    "broker: PRODUCER_SUCCESS, ready": (PRODUCER_READY,),
    "broker: PRODUCER_SUCCESS, not ready": (by_broker(queued(OPENING)),),
    "broker: ERROR to PRODUCER": (by_broker(error(OPENING)),),
    "broker: SUCCESS or ERROR to CLOSE_PRODUCER": CLOSED,
    "broker: SUCCESS or ERROR to our close": OURS_CLOSED,
    "broker: CLOSE_PRODUCER": (by_broker(close_producer(1)),),
    "broker: TOPIC_MIGRATED, withheld": (by_broker(migrated(1, 0)),),
    "broker: SEND_RECEIPT": (by_broker(receipt(1)),),
    "broker: SEND_ERROR": (by_broker(send_error(1)),),
    "gateway: reset": (reset,),
}

SUBSCRIBED_BEFORE = many(by_client(subscribe(1, request=1)), by_broker(success(1)))
SUBSCRIBE = by_client(subscribe(1, request=OPENING))
SUBSCRIBED = by_broker(success(OPENING))
UNSUBSCRIBE = by_client(unsubscribe(1, request=LEAVING))
CLOSE_CONSUMER = by_client(close_consumer(1, request=CLOSING))

CONSUMER_STATES: dict[str, Said] = {
    "none": many(),
    "opening": SUBSCRIBE,
    "reopening": many(SUBSCRIBED_BEFORE, by_client(close_consumer(1, request=2)), SUBSCRIBE),
    "renewing": many(SUBSCRIBED_BEFORE, SUBSCRIBE),
    "open": many(SUBSCRIBE, SUBSCRIBED),
    "unsubscribing": many(SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE),
    "closing": many(SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE, CLOSE_CONSUMER),
    "abandoned": many(
        SUBSCRIBED_BEFORE,
        by_client(close_consumer(1, request=2)),
        SUBSCRIBE,
        by_broker(error(OPENING)),
    ),
    "moving": many(SUBSCRIBE, SUBSCRIBED, leave),
}

CONSUMER_EVENTS: dict[str, Alike] = {
    "client: SUBSCRIBE": (by_client(subscribe(1, request=99)),),
    "client: UNSUBSCRIBE": (UNSUBSCRIBE,),
    "client: CLOSE_CONSUMER": (CLOSE_CONSUMER,),
    "broker: SUCCESS to SUBSCRIBE": (SUBSCRIBED,),
    "broker: ERROR to SUBSCRIBE": (by_broker(error(OPENING)),),
    "broker: SUCCESS to UNSUBSCRIBE": (by_broker(success(LEAVING)),),
    "broker: ERROR to UNSUBSCRIBE": (by_broker(error(LEAVING)),),
    "broker: SUCCESS or ERROR to CLOSE_CONSUMER": CLOSED,
    "broker: SUCCESS or ERROR to our close": OURS_CLOSED,
    "broker: CLOSE_CONSUMER": (by_broker(close_consumer(1)),),
    "broker: TOPIC_MIGRATED, withheld": (by_broker(migrated(1, 1)),),
    "broker: MESSAGE": (by_broker(message(1)),),
}


class Grid(NamedTuple):
    """What is played. `states`: how each is reached."""

    action: Action
    states: Mapping[str, Said]
    events: Mapping[str, Alike]


PRODUCERS = Grid(Action.PRODUCE, PRODUCER_STATES, PRODUCER_EVENTS)
CONSUMERS = Grid(Action.CONSUME, CONSUMER_STATES, CONSUMER_EVENTS)


def played(action: Action, state: Said, event: Said) -> str:
    """Return what an event does in a state: the effects, and the next state if it is another one or
    another incarnation's."""
    play = Play()
    state(play)
    before = play.state(action)
    effects = event(play)
    after = play.state(action)
    name = "none" if after is None else after.name.lower()
    return effects if before is after and "discard" not in effects else f"{effects} → {name}"


def rows(grid: Grid) -> Iterator[tuple[str, str, str]]:
    """Yield for each event what it does in most states, and what in the others."""
    for event, alike in grid.events.items():
        outcomes = {name: _outcome(grid.action, it, alike) for name, it in grid.states.items()}
        ((usual, _),) = Counter(outcomes.values()).most_common(1)
        yield event, usual, _others(outcomes, usual)


def _outcome(action: Action, state: Said, alike: Alike) -> str:
    """Return what any of these events does in a state. Raises `ValueError` if they differ."""
    (outcome,) = {played(action, state, event) for event in alike}
    return outcome


def _others(outcomes: Mapping[str, str], usual: str) -> str:
    """Return the outcomes that are not usual, each with its states."""
    states: dict[str, list[str]] = {}
    for state, outcome in outcomes.items():
        if outcome != usual:
            states.setdefault(outcome, []).append(state)
    return "; ".join(f"{', '.join(names)}: {outcome}" for outcome, names in states.items())
