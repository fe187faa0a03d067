"""A broker's close of a producer whose receipts are on their way: it waits for these alone."""

from __future__ import annotations

import pytest

from gateway.wire.account import Action
from gateway.wire.contract import (
    Attend,
    Direction,
    Discard,
    Drop,
    Effects,
    Forward,
    Inject,
    Later,
    Replace,
)
from gateway.wire.pulsar.closing import FIRST, LATEST, QUIET
from gateway.wire.pulsar.handles import Handle
from gateway.wire.pulsar.states import State

from .frames import (
    close_producer,
    migrated,
    producer,
    producer_success,
    read,
    receipt,
    send,
    send_error,
    success,
)
from .script import Play, at
from .services import OTHER_CLUSTER, SEALED_2, URL_2

CLOSE = close_producer(1)


@pytest.fixture
def play() -> Play:
    """Three messages without a receipt, and the broker's close."""
    play = Play()
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    for _ in range(3):
        play.client(send(1)).passes()
    later = at(FIRST)
    play.broker(CLOSE).gives(Drop(), Discard(play.account), later, Attend())
    return play


def told(play: Play, frame: bytes = CLOSE) -> Effects:
    """Its client hears of the close, and it is over."""
    return (Inject(Direction.TO_CLIENT, frame), Discard(play.account))


def later(play: Play, number: int, now: float) -> Effects:
    return play.goes_on(number, now)


def test_without_receipts_to_come_the_client_is_told_at_once() -> None:
    play = Play()
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).passes()
    play.broker(receipt(1)).passes()
    play.broker(CLOSE).gives(Forward(), play.over)
    assert play.session.delivered(0.0) is None


def test_the_client_is_told_when_all_receipts_came(play: Play) -> None:
    for _ in range(2):
        play.broker(receipt(1)).passes()
        assert play.session.delivered(0.0) == ()
    play.broker(receipt(1)).passes()
    assert play.session.delivered(0.0) == told(play)
    assert play.session.delivered(0.0) is None
    assert later(play, 0, QUIET) == ()
    assert play.services.live == []


def test_an_error_comes_behind_the_close(play: Play) -> None:
    """A topic is terminated: Go drops the producer by the error, and opens none that it dropped."""
    refused = send_error(1)
    play.broker(refused).gives(*told(play), Forward())
    assert later(play, 0, FIRST) == ()
    play.broker(refused).forwards()


def test_receipts_before_the_error_go_ahead_of_the_close(play: Play) -> None:
    play.broker(receipt(1)).passes()
    assert play.session.delivered(0.0) == ()
    play.broker(send_error(1)).gives(*told(play), Forward())


def test_an_error_of_another_producer_releases_nothing(play: Play) -> None:
    play.broker(send_error(2)).forwards()
    assert play.state(Action.PRODUCE) is State.CLOSED


def test_a_migration_comes_behind_the_close(play: Play) -> None:
    news = migrated(1, 0, f"pulsar://{OTHER_CLUSTER}")
    effects = play.broker(news).effects
    assert effects is not None
    assert effects[:-1] == told(play)
    assert isinstance(effects[-1], Replace)
    assert play.state(Action.PRODUCE) is None


def test_the_client_is_told_when_no_receipt_came_for_a_while(play: Play) -> None:
    play.broker(receipt(1)).passes()
    assert later(play, 0, FIRST) == (at(FIRST + QUIET),)
    assert later(play, 1, FIRST + QUIET) == told(play)
    assert later(play, 0, 3 * QUIET) == later(play, 1, 3 * QUIET) == ()


def test_the_client_is_told_in_the_end_though_receipts_keep_coming() -> None:
    play = Play()
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    for _ in range(1000):
        play.client(send(1)).passes()
    play.broker(CLOSE).happens()
    effects: Effects = (at(FIRST),)
    looks = 0
    while isinstance(effects[0], Later):
        assert effects[0].until <= LATEST
        play.broker(receipt(1)).passes()
        effects = later(play, looks, effects[0].until)
        looks += 1
    assert effects == told(play)


def test_what_the_client_sends_meanwhile_goes_nowhere(play: Play) -> None:
    play.client(send(1)).drops()


def test_where_it_goes_is_told_by_our_name(play: Play) -> None:
    play.client(producer(2, request=2)).forwards()
    play.broker(producer_success(2)).forwards()
    play.client(send(2)).passes()
    play.broker(close_producer(2, assignedBrokerServiceUrl=URL_2)).happens()
    play.broker(receipt(2)).passes()
    effects = play.session.delivered(0.0)
    assert effects is not None
    (news,) = [effect for effect in effects if isinstance(effect, Inject)]
    assert read(news.data).close_producer.assignedBrokerServiceUrl == SEALED_2


def test_a_client_that_closes_it_hears_of_the_close_first(play: Play) -> None:
    play.client(close_producer(1, request=2)).gives(*told(play), Forward())
    play.broker(success(2)).forwards()
    assert play.session.delivered(0.0) is None


def test_a_client_that_opens_it_again_begins_anew(play: Play) -> None:
    over = play.over
    play.client(producer(1, request=2)).gives(over, Forward())
    assert play.state(Action.PRODUCE) is State.OPENING
    assert play.session.delivered(0.0) is None
    play.broker(producer_success(2)).forwards()
    play.client(send(1)).passes()


def test_the_brokers_second_close_is_the_last_word(play: Play) -> None:
    play.broker(close_producer(1)).gives(*told(play), Forward())
    assert later(play, 0, QUIET) == ()


def test_receipts_that_were_all_here_at_a_look_are_enough(play: Play) -> None:
    for _ in range(3):
        play.broker(receipt(1)).passes()
    assert later(play, 0, FIRST) == told(play)


def test_many_closed_producers_cost_no_more_each_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are the producers that are looked at, with a receipt for each in a chunk of its
    own."""
    looked = 0
    unanswered = vars(Handle)["unanswered"].fget

    def counting(handle: Handle) -> int:
        nonlocal looked
        looked += 1
        return int(unanswered(handle))

    monkeypatch.setattr(Handle, "unanswered", property(counting))

    def cost(producers: int) -> float:
        nonlocal looked
        play = Play()
        for id in range(producers):
            play.client(producer(id, request=id + 1)).happens()
            play.broker(producer_success(id + 1)).happens()
            play.client(send(id)).passes()
        looked = 0
        for id in range(producers):
            play.broker(close_producer(id)).happens()
            play.session.delivered(0.0)
        for id in range(producers):
            play.broker(receipt(id)).passes()
            play.session.delivered(0.0)
        for number in range(producers):
            later(play, number, FIRST)
        assert play.services.live == []
        return looked / producers

    assert cost(2000) < 2 * cost(500)


def test_a_gateway_that_stops_tells_the_client_at_once(play: Play) -> None:
    play.leave().gives(*told(play))
    assert play.leave().effects is None


def test_a_close_of_the_clients_own_that_waited_goes_on() -> None:
    play = Play()
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(send(1)).passes()
    play.account.hold()
    play.client(send(1)).holds(play.account)
    close = close_producer(1, request=2)
    play.client(close).holds(play.account)
    effects = play.broker(CLOSE).effects
    assert effects is not None
    assert Inject(Direction.TO_BROKER, close) in effects
    play.broker(receipt(1)).passes()
    assert play.session.delivered(0.0) == told(play)
    play.broker(success(2)).forwards()


def test_a_pair_that_ends_awaits_nothing(play: Play) -> None:
    play.session.close()
    assert play.services.live == []
    assert later(play, 0, QUIET) == ()
