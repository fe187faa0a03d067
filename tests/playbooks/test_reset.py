"""A limit has held a producer for too long: its client opens it again, and sends again."""

from __future__ import annotations

from gateway.wire.account import Action
from gateway.wire.contract import Direction, Discard, Inject
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.incarnations import FEW_STRAYS, MOST_STRAYS
from gateway.wire.pulsar.states import State

from .frames import (
    NO_REQUEST,
    close_producer,
    producer,
    producer_success,
    raw,
    read,
    receipt,
    send,
    subscribe,
    success,
)
from .script import Outcome, Play


def with_held_producer(sent: int = 0) -> Play:
    """One whose first messages are at the broker, and whose next one is held."""
    play = Play()
    play.client(producer(1, request=1))
    play.broker(producer_success(1))
    for sequence in range(sent):
        play.client(send(1, sequence)).passes()
    play.account.hold()
    play.client(send(1, sent)).holds(play.account)
    return play


def told(step: Outcome) -> int:
    """The request of the CLOSE_PRODUCER that only the client hears."""
    assert step.effects is not None
    (close,) = [it for it in step.effects if isinstance(it, Inject)]
    assert close.direction is Direction.TO_CLIENT
    command = read(close.data).close_producer
    assert not command.assignedBrokerServiceUrl, "it is to come back on this connection"
    return int(command.request_id)


def test_a_producer_that_awaits_nothing_is_reset_at_once() -> None:
    play = with_held_producer()
    step = play.reset()
    assert step.effects is not None
    assert step.effects[0] == Discard(play.account)
    assert told(step) == NO_REQUEST
    assert play.reset().effects is None


def test_receipts_come_first() -> None:
    """The client would send again what the broker has, and messages were doubled."""
    play = with_held_producer(sent=2)
    play.reset().gives(Discard(play.account))
    play.broker(receipt(1, 0)).passes()
    play.reset().gives()
    play.broker(receipt(1, 1)).passes()
    assert told(play.reset()) == NO_REQUEST


def test_what_still_arrives_is_dropped_and_sent_again_by_the_next_incarnation() -> None:
    play = with_held_producer(sent=1)
    play.reset().happens()
    play.client(send(1, 2)).drops()
    play.broker(receipt(1, 0)).passes()
    play.reset().happens()
    play.client(send(1, 3)).drops()
    play.client(producer(1, request=2)).happens()
    play.broker(producer_success(2)).forwards()
    play.client(send(1, 1)).passes()
    assert play.account.messages == 1


def test_much_may_still_arrive_and_more_each_time_that_the_gateway_closes_one() -> None:
    play = with_held_producer()
    large = raw(Kind.SEND, send(1)[12:16], bytes(FEW_STRAYS))
    for request in (2, 3):
        play.reset().happens()
        for _ in range(MOST_STRAYS // len(large)):
            play.client(large).drops()
        play.client(producer(1, request=request)).happens()
        play.broker(producer_success(request)).forwards()


def test_the_brokers_own_close_ends_a_reset() -> None:
    play = with_held_producer(sent=1)
    play.reset().happens()
    play.broker(close_producer(1, request=NO_REQUEST)).happens()
    assert play.state(Action.PRODUCE) is None
    assert play.reset().effects is None


def test_a_client_that_closes_meanwhile_is_let_go() -> None:
    play = with_held_producer()
    close = close_producer(1, request=7)
    play.client(close).holds(play.account)
    play.reset().gives(Discard(play.account), Inject(Direction.TO_BROKER, close))
    assert play.reset().effects is None
    play.broker(success(7)).happens()
    assert play.state(Action.PRODUCE) is None


def test_the_gateway_stops_meanwhile() -> None:
    play = with_held_producer(sent=1)
    play.reset().happens()
    play.leave().happens()
    assert play.state(Action.PRODUCE) is State.LEAVING
    assert play.reset().effects is None


def test_consumers_are_not_reset() -> None:
    play = Play()
    play.client(subscribe(1, request=1))
    play.broker(success(1))
    assert play.reset().effects is None
