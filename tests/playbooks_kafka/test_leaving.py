"""How a pair ends: the drain, another broker than the wanted one, and what is revoked."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gateway.wire.account import Account, Action, Right
from gateway.wire.address import Address
from gateway.wire.contract import EndReason
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.session import LONG, REBOOTSTRAP

from .frames import (
    FETCH,
    JOIN_GROUP,
    METADATA,
    SYNC_GROUP,
    ask,
    batch,
    described,
    fetch,
    fetched,
    known,
    metadata,
    produce,
    produced,
    split,
    tell,
    told,
)
from .script import VERIFY, KafkaServices, Play

ONE, TWO = Address("one.internal", 9092), Address("two.internal", 9092)


def is_done(play: Play) -> bool:
    """Take two steps of leaving; return whether none is left."""
    play.leave()
    return not play.leave()


# -- drain -----------------------------------------------------------------------------------------


def test_a_client_that_leaves_gets_the_answers_that_it_is_owed() -> None:
    play = Play()
    play.client(metadata(12, 1), produce(9, 2, a=batch(1)))
    assert not is_done(play)
    play.broker(described(12, 1))
    assert not is_done(play)
    play.broker(produced(9, 2, a=0))
    assert is_done(play)


@pytest.mark.parametrize(
    "request_", [metadata(12, 3), produce(9, 3, a=batch(1)), fetch(12, 3, "a"), ask(12, 4, 3)]
)
def test_requests_of_a_client_that_leaves_stay_unread(request_: bytes) -> None:
    play = Play()
    play.client(fetch(12, 1, "a"))
    play.broker(tell(FETCH, 12, 1))
    assert is_done(play)
    assert play.client(request_) == b""
    assert play.client_got() == b""
    assert play.waits == math.inf
    assert is_done(play)


@pytest.mark.parametrize("version", range(REBOOTSTRAP, known(METADATA).request.last + 1))
def test_clients_that_understand_it_are_sent_back_to_where_they_began(version: int) -> None:
    play = Play()
    assert is_done(play)
    assert play.client(metadata(version, 7, "a")) == b""
    heard = told(METADATA, version, play.client_got())
    assert heard["ErrorCode"] == ErrorCode.REBOOTSTRAP_REQUIRED
    assert heard["Brokers"] == heard["Topics"] == []


def test_they_are_told_so_behind_the_answers_that_they_are_owed() -> None:
    play = Play()
    play.client(produce(9, 1, a=batch(1)))
    assert not is_done(play)
    play.client(metadata(13, 2))
    assert play.client_got() == b""
    heard = split(play.broker(produced(9, 1, a=0)))
    assert heard[0] == produced(9, 1, a=0)
    assert told(METADATA, 13, heard[1])["ErrorCode"] == ErrorCode.REBOOTSTRAP_REQUIRED
    assert is_done(play)


def test_a_metadata_that_waits_for_its_rate_is_sent_back_too() -> None:
    services = KafkaServices()
    services.paced, services.delay = {Action.LOOKUP}, 30.0
    play = Play(services)
    play.client(metadata(13, 1))
    assert play.is_waiting
    play.leave()
    assert told(METADATA, 13, play.client_got())["ErrorCode"] == ErrorCode.REBOOTSTRAP_REQUIRED


@pytest.mark.parametrize("key", sorted(LONG))
def test_nobody_waits_for_members_of_a_group_that_may_come_in_minutes(key: int) -> None:
    play = Play()
    play.client(ask(key, 4, 1, GroupId="g"))
    assert is_done(play)
    assert {JOIN_GROUP, SYNC_GROUP} == LONG


def test_a_request_that_passes_is_waited_for() -> None:
    play = Play()
    said = produce(9, 1, a=batch(1, 5000))
    play.client(said[:1000])
    assert not is_done(play)
    assert play.client(said[1000:]) == said[1000:]
    assert not is_done(play)
    play.broker(produced(9, 1, a=0))
    assert is_done(play)


def test_an_answer_that_passes_is_waited_for() -> None:
    play = Play()
    play.client(fetch(12, 1, "a"))
    said = fetched(12, 1, a=batch(1, 5000))
    play.broker(said[:1000])
    assert not is_done(play)
    assert play.broker(said[1000:]) == said[1000:]
    assert is_done(play)


# -- another broker --------------------------------------------------------------------------------


def misled(**settings: Any) -> Play:
    """Return a pair whose client wants broker 2, and got another one."""
    return Play(node=2, guessed=ONE, **settings)


def test_a_client_that_got_another_broker_goes_on_until_the_right_one_is_known() -> None:
    play = misled()
    assert play.client(metadata(12, 1)) == metadata(12, 1)
    play.broker(described(12, 1, brokers={1: ONE.host, 2: TWO.host}))
    assert play.ended is None
    assert play.client(metadata(12, 2)) == b""
    assert play.ended is EndReason.TARGET_REFUSED


@pytest.mark.parametrize("request_", [produce(9, 2, a=batch(1)), fetch(12, 2, "a")])
def test_it_produces_and_fetches_no_more_then(request_: bytes) -> None:
    play = misled()
    play.client(metadata(12, 1), produce(9, 3, 0, a=batch(1)), fetch(12, 4, "a"))
    play.broker(described(12, 1, brokers={1: ONE.host, 2: TWO.host}))
    assert play.client(request_) == b""
    assert play.ended is EndReason.TARGET_REFUSED


def test_a_client_that_happened_to_get_the_right_broker_stays() -> None:
    play = misled()
    play.client(metadata(12, 1))
    play.broker(described(12, 1, brokers={2: ONE.host}))
    assert play.client(metadata(12, 2)) == metadata(12, 2)


# -- revoked ---------------------------------------------------------------------------------------


def test_a_topic_that_may_not_be_produced_to_any_more_is_denied() -> None:
    services = KafkaServices()
    services.forbidden = set()
    play = Play(services)
    play.client(produce(9, 1, a=batch(1)))
    services.forbidden = {(Right.PRODUCE, "a")}
    play.revoke(play.account("a"))
    assert play.ended is None
    assert b"\x02a" not in play.client(produce(9, 2, a=batch(1)))
    play.broker(produced(9, 1, a=0))
    assert services.released == [play.account("a")]


def test_one_that_may_not_be_consumed_any_more_ends_the_pair() -> None:
    play = Play()
    play.client(fetch(12, 1, "a"))
    play.revoke(play.account("a"))
    assert play.ended is EndReason.OPERATOR_CLOSED


def test_an_account_of_nobody_ends_nothing() -> None:
    play = Play()
    play.revoke(Account(Action.PRODUCE))
    assert play.ended is None


# -- the rest --------------------------------------------------------------------------------------


def test_clients_are_not_asked_for_credentials_and_get_no_farewell() -> None:
    play = Play(mode=VERIFY)
    assert play.session.expiring(0.0) == ()
    assert play.session.farewell(EndReason.DRAINED, "the gateway stops") == b""


def test_many_accounts_are_given_back_in_steps() -> None:
    play = Play()
    for number in range(300):
        play.client(produce(9, number, 0, **{f"t{number}": batch(1)}))
        play.client(fetch(12, number, f"t{number}"))
        play.broker(tell(FETCH, 12, number))
    assert play.session.close()
    play.close()
