"""Policy takes a right back: what it admitted ends, and nothing else of the connection."""

from __future__ import annotations

import pytest

from gateway.wire.account import Account, Action
from gateway.wire.contract import Denial, Discard, Drop, Effects, Inject, Later, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.closing import PATIENCE
from gateway.wire.pulsar.incarnations import REVOKED_AGAIN
from gateway.wire.pulsar.states import State

from .frames import (
    close_consumer,
    close_producer,
    error,
    producer,
    producer_success,
    read,
    receipt,
    send,
    subscribe,
    success,
)
from .script import Play, at

DENIAL = Denial(Refusal.UNAUTHORIZED, "not allowed any more")


def revoked(play: Play, account: Account | None = None) -> Effects:
    """The effects of taking a right back."""
    effects = play.session.revoke(account or play.account, DENIAL, 0.0)
    play._note(effects)
    return effects


@pytest.fixture
def play() -> Play:
    """A pair with two producers and a consumer, all open."""
    play = Play()
    for id in (1, 2):
        play.client(producer(id, request=id)).forwards()
        play.broker(producer_success(id)).forwards()
    play.client(subscribe(1, request=3)).forwards()
    play.broker(success(3)).forwards()
    return play


def closes(play: Play, effects: Effects) -> BaseCommand:
    """The close that the broker gets from the gateway."""
    discard, close, later = effects
    assert isinstance(discard, Discard)
    assert isinstance(close, Inject)
    assert later == at(PATIENCE)
    return read(close.data)


def test_a_producer_is_closed_at_the_broker_and_then_at_its_client(play: Play) -> None:
    account = play.services.admitted[0]
    command = closes(play, revoked(play, account))
    assert command.close_producer.producer_id == 1
    play.client(send(1)).drops()
    play.broker(receipt(1)).passes()
    told = Inject(1, close_producer(1))  # type: ignore[arg-type]
    outcome = play.broker(success(play.our_close))
    assert outcome.effects == (Drop(), told, Discard(account))
    assert account not in play.services.live


def test_a_consumer_is_closed_in_the_same_way(play: Play) -> None:
    command = closes(play, revoked(play))
    assert command.close_consumer.consumer_id == 1
    outcome = play.broker(success(play.our_close))
    told = Inject(1, close_consumer(1))  # type: ignore[arg-type]
    assert outcome.effects == (Drop(), told, Discard(play.account))


def test_all_others_go_on(play: Play) -> None:
    revoked(play, play.services.admitted[0])
    play.client(send(2)).passes()
    assert play.state(Action.CONSUME) is State.OPEN


def test_the_client_is_told_too_where_the_broker_does_not_answer(play: Play) -> None:
    account = play.services.admitted[0]
    revoked(play, account)
    effects = play.goes_on(-1, PATIENCE)
    assert effects[0] == Inject(1, close_producer(1))  # type: ignore[arg-type]
    assert account not in play.services.live


def test_the_clients_own_close_overtakes_it(play: Play) -> None:
    revoked(play, play.services.admitted[0])
    play.client(close_producer(1, request=9)).happens()
    play.broker(success(9)).happens()
    assert play.goes_on(-1, PATIENCE) == ()


def test_one_that_is_being_opened_is_closed_when_it_is_open() -> None:
    play = Play()
    play.client(producer(1, request=1)).forwards()
    assert revoked(play) == (at(REVOKED_AGAIN),)
    play.broker(producer_success(1)).forwards()
    command = closes(play, play.laters[-1].then(0.0))
    assert command.close_producer.producer_id == 1


def test_one_that_the_broker_refuses_meanwhile_needs_no_close() -> None:
    play = Play()
    play.client(producer(1, request=1)).forwards()
    (later,) = revoked(play)
    assert isinstance(later, Later)
    play.broker(error(1)).happens()
    assert later.then(REVOKED_AGAIN) == ()


def test_what_is_over_has_no_right_to_lose(play: Play) -> None:
    account = play.services.admitted[0]
    play.client(close_producer(1, request=9)).happens()
    assert revoked(play, account) == ()
    play.broker(success(9)).happens()
    assert revoked(play, account) == ()


def test_the_gateway_stops_while_a_right_is_taken_back(play: Play) -> None:
    revoked(play, play.services.admitted[0])
    assert not play.session.incarnations.have_left
    play.leave().happens()
    play.broker(success(play.our_close)).happens()
