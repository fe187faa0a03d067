"""Requests about producers and consumers go to the broker under ids that no client knows."""

from __future__ import annotations

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import Direction, Effects, Inject, Replace
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.context import draw_first_request
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.handles import MOST_ORPHANS
from gateway.wire.pulsar.incarnations import CLOSED_AT_ONCE, LEFT_AT_ONCE
from gateway.wire.pulsar.states import State
from tests.support.requests import FIRST_OWN

from .frames import (
    close_consumer,
    close_producer,
    error,
    frame,
    message,
    producer,
    producer_success,
    read,
    receipt,
    send,
    subscribe,
    success,
    unsubscribe,
)
from .script import Outcome, Play


class Bare(Play):
    """A pair as it is on the wire."""

    translates = False

    def asks(self, said: bytes) -> int:
        """The client asks; return the request id that the broker is told."""
        command = self.client(said).replaced()
        (body,) = (value for field, value in command.ListFields() if field.name != "type")
        own: int = body.request_id
        assert own >= FIRST_OWN
        return own


@pytest.fixture
def play() -> Bare:
    return Bare()


def told(outcome: Outcome) -> BaseCommand:
    """Return the command that goes on to the client."""
    effects: Effects = outcome.effects or ()
    (replaced,) = (it for it in effects if isinstance(it, Replace))
    return read(replaced.data)


def test_ids_are_drawn_where_no_client_counts_to() -> None:
    drawn = [draw_first_request() for _ in range(100)]
    assert len(set(drawn)) == 100
    assert all(1 << 62 <= it < (1 << 62) + (1 << 61) for it in drawn)


def test_answers_reach_the_client_under_its_ids(play: Bare) -> None:
    own = play.asks(producer(1, request=7))
    assert told(play.broker(producer_success(own))).producer_success.request_id == 7
    own = play.asks(subscribe(1, request=8))
    assert told(play.broker(success(own))).success.request_id == 8
    own = play.asks(unsubscribe(1, request=9))
    assert told(play.broker(error(own))).error.request_id == 9
    own = play.asks(close_consumer(1, request=10))
    assert told(play.broker(success(own))).success.request_id == 10
    own = play.asks(close_producer(1, request=11))
    assert told(play.broker(success(own))).success.request_id == 11


def test_the_answer_to_another_request_of_the_same_id_ends_no_producer(play: Bare) -> None:
    """The broker answers at once that it has no consumer 99, and opens the producer after that."""
    other = play.asks(unsubscribe(99, request=5))
    own = play.asks(producer(1, request=5))
    assert told(play.broker(error(other))).error.request_id == 5
    assert play.state(Action.PRODUCE) is State.OPENING
    play.broker(producer_success(own)).happens()
    play.client(send(1)).passes()
    assert play.account.messages == 1


def test_the_answer_to_another_request_of_the_same_id_ends_no_consumer(play: Bare) -> None:
    """SEEK passes unread, and is answered by SUCCESS."""
    play.broker(success(play.asks(subscribe(1, request=1)))).happens()
    play.client(frame(Kind.SEEK, consumer_id=2, request_id=7, message_publish_time=1)).passes()
    play.asks(unsubscribe(1, request=7))
    play.broker(success(7)).forwards()
    assert play.state(Action.CONSUME) is State.UNSUBSCRIBING
    play.broker(message(1)).passes()
    assert play.account.messages == 1


def test_two_requests_of_one_id_have_an_answer_each(play: Bare) -> None:
    first, second = play.asks(producer(1, request=5)), play.asks(producer(2, request=5))
    assert first != second
    play.broker(producer_success(second)).happens()
    assert play.state(Action.PRODUCE, 1) is State.OPENING
    assert play.state(Action.PRODUCE, 2) is State.OPEN
    play.broker(error(first)).happens()
    assert play.state(Action.PRODUCE, 1) is None


def test_an_answer_that_comes_when_all_is_over_reaches_the_client(play: Bare) -> None:
    """The closes of both sides cross."""
    play.broker(producer_success(play.asks(producer(1, request=1)))).happens()
    own = play.asks(close_producer(1, request=2))
    play.broker(close_producer(1)).happens()
    assert play.state(Action.PRODUCE) is None
    assert told(play.broker(success(own))).success.request_id == 2


def test_it_reaches_the_client_once(play: Bare) -> None:
    own = play.asks(close_producer(9, request=2))
    assert told(play.broker(error(own))).error.request_id == 2
    play.broker(error(own)).drops()


def test_a_close_that_waited_behind_held_frames_has_its_answer(play: Bare) -> None:
    play.broker(producer_success(play.asks(producer(1, request=1)))).happens()
    play.account.hold()
    play.client(send(1)).happens()
    play.client(close_producer(1, request=2)).happens()
    effects = play.broker(close_producer(1)).effects or ()
    (injected,) = (it for it in effects if isinstance(it, Inject))
    assert injected.direction is Direction.TO_BROKER
    own = read(injected.data).close_producer.request_id
    assert told(play.broker(success(own))).success.request_id == 2
    play.broker(receipt(1)).passes()


def test_an_id_that_nobody_asked_under_is_dropped(play: Bare) -> None:
    """No client learns how the gateway counts."""
    first = play.asks(close_consumer(1, request=1))
    for number in range(MOST_ORPHANS):
        play.asks(close_consumer(1, request=2 + number))
    play.broker(success(first)).drops()
    play.broker(success(first + 1 + MOST_ORPHANS)).forwards()


def test_what_a_client_asks_for_again_and_again_is_bounded(play: Bare) -> None:
    for number in range(3 * MOST_ORPHANS):
        play.asks(close_consumer(1, request=number))
    orphans = play.session.incarnations.handles._orphans
    assert orphans is not None
    assert len(orphans) == MOST_ORPHANS


def test_a_pair_that_is_over_gives_its_accounts_back_some_at_a_time() -> None:
    play = Play()
    for id in range(2 * CLOSED_AT_ONCE + 1):
        play.client(producer(id, request=id)).happens()
    steps = 0
    while play.session.close():
        steps += 1
        assert len(play.services.released) == steps * CLOSED_AT_ONCE
    assert steps == 2
    assert play.services.live == []


def test_as_many_move_at_a_time_as_may() -> None:
    play = Play()
    for id in range(LEFT_AT_ONCE + 1):
        play.client(producer(id, request=id)).happens()
        play.broker(producer_success(id)).happens()
    closes = [len(play.leave().effects or ()) // 2 for _ in range(3)]
    assert closes == [LEFT_AT_ONCE, 1, 0]
