"""Consumers: what opens, counts and ends an incarnation."""

from __future__ import annotations

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import Drop, Forward
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.commands import IN_USE
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State

from .frames import (
    TOPIC,
    close_consumer,
    close_producer,
    error,
    frame,
    message,
    producer,
    producer_success,
    receipt,
    send,
    subscribe,
    success,
    unsubscribe,
)
from .script import FEW, Play
from .services import FORBIDDEN


@pytest.fixture
def play() -> Play:
    return Play()


def opened(play: Play, id: int = 1, request: int = 1) -> Play:
    play.client(subscribe(id, request=request)).happens()
    play.broker(success(request)).forwards()
    return play


def state(play: Play, id: int = 1) -> State | None:
    return play.state(Action.CONSUME, id)


def test_a_consumer_is_admitted_by_its_topic(play: Play) -> None:
    play.client(subscribe(1, request=5, topic="persistent://a/b/c")).forwards()
    assert (play.account.topic, play.account.action) == ("persistent://a/b/c", Action.CONSUME)
    assert state(play) is State.OPENING
    play.broker(success(5)).forwards()
    assert state(play) is State.OPEN


def test_a_refused_consumer_never_reaches_the_broker(play: Play) -> None:
    outcome = play.client(subscribe(1, request=5, topic="forbidden"))
    outcome.refuses_consumer(error(5, ServerError.AuthorizationError, FORBIDDEN.text))
    assert state(play) is None


def test_more_consumers_than_the_bound_are_refused() -> None:
    play = Play(bounds=FEW)
    play.client(subscribe(1, request=1)).forwards()
    play.client(producer(1, request=2)).forwards()
    outcome = play.client(subscribe(2, request=3))
    assert outcome.effects is not None
    assert outcome.effects[0] == Drop()


def test_messages_are_counted_from_the_subscription_on(play: Play) -> None:
    play.client(subscribe(1)).forwards()
    play.broker(message(1)).passes()
    play.broker(success(1)).forwards()
    play.broker(message(1)).passes()
    assert (play.account.messages, play.account.bytes) == (2, 2 * len(message(1)))


def test_messages_for_unknown_consumers_pass_and_count_for_no_consumer(play: Play) -> None:
    play.broker(message(9)).passes()
    opened(play)
    play.broker(close_consumer(1)).gives(Forward(), play.over)
    play.broker(message(1)).passes()
    assert play.account.messages == 0


def test_what_consumers_ask_for_passes_unseen(play: Play) -> None:
    opened(play)
    for kind in (Kind.FLOW, Kind.ACK, Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, Kind.SEEK):
        play.client(frame(kind, consumer_id=1)).passes()


def test_a_subscription_that_the_broker_refuses_is_in_no_state(play: Play) -> None:
    play.client(subscribe(1)).forwards()
    play.broker(error(1)).gives(Forward(), play.over)
    assert play.services.live == []


def test_a_client_closes_its_consumer(play: Play) -> None:
    opened(play)
    play.client(close_consumer(1, request=2)).forwards()
    play.broker(message(1)).passes()
    assert play.account.messages == 1
    play.broker(success(2)).gives(Forward(), play.over)


def test_a_close_that_fails_ends_the_incarnation_too(play: Play) -> None:
    opened(play)
    play.client(close_consumer(1, request=2)).forwards()
    play.broker(error(2)).gives(Forward(), play.over)


def test_a_client_unsubscribes(play: Play) -> None:
    opened(play)
    play.client(unsubscribe(1, request=2)).forwards()
    assert state(play) is State.UNSUBSCRIBING
    play.broker(success(2)).gives(Forward(), play.over)


def test_a_failed_unsubscription_leaves_the_consumer_open(play: Play) -> None:
    opened(play)
    play.client(unsubscribe(1, request=2)).forwards()
    play.broker(error(2)).forwards()
    assert state(play) is State.OPEN
    play.broker(message(1)).passes()
    assert play.account.messages == 1


def test_a_subscriptions_own_answer_does_not_answer_the_unsubscription(play: Play) -> None:
    play.client(subscribe(1, request=1)).forwards()
    play.client(unsubscribe(1, request=2)).forwards()
    play.broker(success(1)).forwards()
    assert state(play) is State.UNSUBSCRIBING
    play.broker(success(2)).gives(Forward(), play.over)


def test_a_subscriptions_own_answer_does_not_answer_the_close(play: Play) -> None:
    play.client(subscribe(1, request=1)).forwards()
    play.client(close_consumer(1, request=2)).forwards()
    play.broker(success(1)).forwards()
    assert play.services.live == [play.account]
    play.broker(success(2)).gives(Forward(), play.over)


def test_a_close_outlasts_a_failed_unsubscription(play: Play) -> None:
    opened(play)
    play.client(unsubscribe(1, request=2)).forwards()
    play.client(close_consumer(1, request=3)).forwards()
    play.broker(error(2)).forwards()
    assert state(play) is State.CLOSING
    play.broker(success(3)).gives(Forward(), play.over)


def test_further_closes_are_not_kept_in_mind(play: Play) -> None:
    opened(play)
    for request in range(2, 9):
        play.client(close_consumer(1, request=request)).forwards()
        play.client(unsubscribe(1, request=100 + request)).forwards()
    assert len(play.session.incarnations.handles._awaited) == 1
    play.broker(success(102)).forwards()
    play.broker(success(2)).gives(Forward(), play.over)


def test_the_broker_closes_a_consumer(play: Play) -> None:
    opened(play)
    play.broker(close_consumer(1)).gives(Forward(), play.over)
    assert state(play) is None


def test_a_close_meant_for_the_incarnation_before_does_not_end_this_one(play: Play) -> None:
    opened(play)
    play.client(subscribe(1, request=2)).forwards()
    play.broker(close_consumer(1)).forwards()
    assert state(play) is State.OPENING
    play.broker(success(2)).forwards()
    play.broker(close_consumer(1)).gives(Forward(), play.over)


def test_unknown_consumers_are_the_brokers_to_answer(play: Play) -> None:
    play.client(unsubscribe(9)).forwards()
    play.client(close_consumer(9, request=3)).forwards()
    play.broker(close_consumer(9)).forwards()
    play.broker(success(3)).forwards()


def test_a_producer_and_a_consumer_may_have_the_same_id(play: Play) -> None:
    opened(play, 1, 1)
    play.client(producer(1, request=2)).forwards()
    play.broker(producer_success(2)).forwards()
    play.broker(close_consumer(1)).happens()
    play.client(send(1)).passes()
    play.broker(receipt(1)).passes()
    play.broker(close_producer(1)).happens()
    assert play.services.live == []


def test_a_subscription_is_not_a_producer(play: Play) -> None:
    """Whatever a broker answers, an id opens only as what it asked to be."""
    play.client(subscribe(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).drops()


def test_an_id_is_of_one_subscription_as_long_as_it_is_in_use(play: Play) -> None:
    """The broker would say yes, and go on with the consumer that it has."""
    opened(play)
    refused = error(2, ServerError.ServiceNotReady, IN_USE.text)
    play.client(subscribe(1, request=2, topic="persistent://a/b/c")).refuses(refused)
    play.client(
        frame(
            Kind.SUBSCRIBE,
            consumer_id=1,
            request_id=2,
            topic=TOPIC,
            subscription="other",
            subType=0,
        )
    ).refuses(refused)
    play.broker(message(1)).passes()
    assert play.account.messages == 1
    play.broker(close_consumer(1)).gives(Forward(), play.over)
    play.client(subscribe(1, request=3, topic="persistent://a/b/c")).forwards()


def test_an_unsubscribe_that_comes_before_its_consumer_is_open_is_refused(play: Play) -> None:
    play.client(subscribe(1, request=1)).forwards()
    play.client(unsubscribe(1, request=2)).forwards()
    play.broker(error(2)).forwards()
    assert state(play) is State.OPENING
    play.broker(success(1)).forwards()
    assert state(play) is State.OPEN
