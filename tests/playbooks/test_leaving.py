"""The gateway stops: how producers and consumers get to another one."""

from __future__ import annotations

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import Direction, Discard, Drop, Effect, Forward, Inject
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.closing import PATIENCE
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State

from .frames import (
    NO_REQUEST,
    close_producer,
    connect_to,
    error,
    frame,
    lookup,
    producer,
    producer_success,
    queued,
    read,
    receipt,
    redirect_to,
    send,
    subscribe,
    success,
)
from .script import Play
from .services import BROKER_1, NAME_1, URL_1, URL_2

ALIAS = f"pulsar://alias-{NAME_1}:6650"


def told(effects: tuple[Effect, ...] | None, direction: Direction) -> list[BaseCommand]:
    """The frames of our own among effects."""
    injected = (it for it in effects or () if isinstance(it, Inject))
    return [read(it.data) for it in injected if it.direction is direction]


def with_producer(play: Play, *, sent: int = 0) -> Play:
    play.client(producer(1, request=1))
    play.broker(producer_success(1))
    for sequence in range(sent):
        play.client(send(1, sequence))
    return play


def with_consumer(play: Play) -> Play:
    play.client(subscribe(2, request=2))
    play.broker(success(2))
    return play


def test_a_producer_without_outstanding_messages_is_closed_at_the_broker_at_once() -> None:
    play = with_producer(Play())
    effects = play.leave().effects
    (close,) = told(effects, Direction.TO_BROKER)
    assert close.close_producer.producer_id == 1
    assert close.close_producer.request_id == play.our_close
    assert not told(effects, Direction.TO_CLIENT)
    assert play.state(Action.PRODUCE) is State.MOVING


def test_receipts_are_awaited_and_nothing_is_forwarded_meanwhile() -> None:
    play = with_producer(Play(), sent=2)
    assert play.leave().effects == (Discard(play.account),)
    play.client(send(1, 2)).drops()
    play.broker(receipt(1, 0)).passes()
    assert play.leave().effects == ()
    play.broker(receipt(1, 1)).passes()
    (close,) = told(play.leave().effects, Direction.TO_BROKER)
    assert close.type == BaseCommand.CLOSE_PRODUCER


def test_the_client_is_told_an_alias_when_the_broker_has_closed() -> None:
    play = with_producer(Play())
    play.leave()
    effects = play.broker(success(play.our_close)).effects
    assert effects is not None
    assert effects[0] == Drop()
    (close,) = told(effects, Direction.TO_CLIENT)
    assert close.close_producer.request_id == NO_REQUEST
    assert close.close_producer.assignedBrokerServiceUrl == ALIAS
    assert close.close_producer.assignedBrokerServiceUrlTls == ALIAS
    assert play.state(Action.PRODUCE) is None
    assert play.leave().effects is None


def test_a_consumer_is_moved_in_the_same_order() -> None:
    play = with_consumer(Play())
    (close,) = told(play.leave().effects, Direction.TO_BROKER)
    assert close.close_consumer.consumer_id == 2
    (shut,) = told(play.broker(error(play.our_close)).effects, Direction.TO_CLIENT)
    assert shut.close_consumer.consumer_id == 2
    assert shut.close_consumer.assignedBrokerServiceUrl == ALIAS


def test_a_broker_without_an_alias_is_left_out() -> None:
    play = with_producer(Play())
    del play.services.names[BROKER_1]
    play.leave()
    (close,) = told(play.broker(success(play.our_close)).effects, Direction.TO_CLIENT)
    assert not close.close_producer.HasField("assignedBrokerServiceUrl")


def test_a_broker_that_owes_receipts_for_too_long_is_not_awaited() -> None:
    play = with_producer(Play(), sent=1)
    play.leave(now=10.0)
    assert play.leave(now=10.0 + PATIENCE - 0.01).effects == ()
    (close,) = told(play.leave(now=10.0 + PATIENCE).effects, Direction.TO_BROKER)
    assert close.type == BaseCommand.CLOSE_PRODUCER


def test_a_broker_that_goes_on_sending_receipts_is_awaited() -> None:
    """With a thousand messages without receipts, a busy broker needs longer than `PATIENCE`. If the
    client heard of the close before, it would repeat what is stored."""
    play = with_producer(Play(), sent=5)
    play.leave(now=10.0)
    for number in range(4):
        play.broker(receipt(1, number)).passes()
        assert play.leave(now=10.0 + (number + 1) * 0.9 * PATIENCE).effects == ()
    (close,) = told(play.leave(now=10.0 + 4.7 * PATIENCE).effects, Direction.TO_BROKER)
    assert close.type == BaseCommand.CLOSE_PRODUCER
    play.broker(receipt(1, 4)).passes()
    assert play.leave(now=10.0 + 5.7 * PATIENCE).effects == ()
    (close,) = told(play.leave(now=10.0 + 6.7 * PATIENCE).effects, Direction.TO_CLIENT)
    assert close.close_producer.assignedBrokerServiceUrl == ALIAS


def test_a_broker_that_does_not_answer_a_close_is_not_awaited() -> None:
    play = with_producer(Play())
    play.leave(now=10.0)
    assert play.leave(now=11.0).effects == ()
    (close,) = told(play.leave(now=10.0 + PATIENCE).effects, Direction.TO_CLIENT)
    assert close.close_producer.assignedBrokerServiceUrl == ALIAS
    play.broker(success(play.our_close)).drops()


def test_held_frames_are_discarded() -> None:
    play = with_producer(Play())
    play.account.hold()
    play.client(send(1)).holds(play.account)
    effects = play.leave().effects
    assert effects is not None
    assert Discard(play.account) in effects


def test_a_close_that_waits_behind_held_frames_goes_on() -> None:
    play = with_producer(Play())
    play.account.hold()
    close = close_producer(1, request=9)
    play.client(send(1))
    play.client(close).holds(play.account)
    play.leave().gives(Discard(play.account), Inject(Direction.TO_BROKER, close))
    assert play.state(Action.PRODUCE) is State.CLOSING
    play.broker(success(9)).gives(Forward(), Discard(play.account))


def test_a_producer_that_is_being_opened_is_moved_when_it_is_open() -> None:
    play = Play()
    play.client(producer(1, request=1))
    assert play.leave().effects == ()
    play.broker(producer_success(1))
    (close,) = told(play.leave().effects, Direction.TO_BROKER)
    assert close.type == BaseCommand.CLOSE_PRODUCER


def test_a_producer_in_the_queue_is_moved_too() -> None:
    play = Play()
    play.client(producer(1, request=1))
    play.broker(queued(1))
    (close,) = told(play.leave().effects, Direction.TO_BROKER)
    assert close.type == BaseCommand.CLOSE_PRODUCER


def test_a_client_that_opens_the_id_again_is_moved_anew() -> None:
    play = with_producer(Play())
    play.leave()
    play.client(producer(1, request=5))
    play.broker(success(play.our_close)).drops()
    play.broker(producer_success(5))
    (close,) = told(play.leave().effects, Direction.TO_BROKER)
    assert close.close_producer.request_id == play.our_close


@pytest.mark.parametrize("response", [connect_to(URL_1), redirect_to(URL_2)])
def test_a_pair_with_an_open_lookup_is_not_empty(response: bytes) -> None:
    play = Play()
    play.client(lookup(1))
    assert play.leave().effects == ()
    outcome = play.broker(response)
    if response == redirect_to(URL_2):
        _, token = outcome.started()
        assert play.leave().effects == ()
        play.resume(token, connect_to(URL_2))
    assert play.leave().effects is None


def end_transaction(request: int) -> bytes:
    return frame(Kind.END_TXN, request_id=request, txnid_least_bits=5, txnid_most_bits=1)


def transaction_ended(request: int) -> bytes:
    return frame(Kind.END_TXN_RESPONSE, request_id=request)


def test_a_pair_on_which_a_transaction_ends_is_not_empty() -> None:
    """A client that lost the response would be told that there is no such transaction."""
    play = Play()
    play.client(end_transaction(7)).forwards()
    assert play.leave().effects == ()
    play.broker(transaction_ended(7)).forwards()
    assert play.leave().effects is None


def test_a_transaction_ends_elsewhere_when_everybody_has_left() -> None:
    play = Play()
    assert play.leave().effects is None
    play.client(end_transaction(7)).drops()
    assert play.leave().effects is None


def test_a_transaction_ends_while_its_producer_moves() -> None:
    play = with_producer(Play(), sent=1)
    play.leave()
    play.client(end_transaction(7)).forwards()


def test_an_answer_that_nobody_asked_for_changes_nothing() -> None:
    play = Play()
    play.broker(transaction_ended(7)).forwards()
    play.client(end_transaction(8)).forwards()
    assert play.leave().effects == ()
