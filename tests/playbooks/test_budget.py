"""What all sessions keep together is bounded, and given back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.wire.account import Action
from gateway.wire.admission import NO_ROOM
from gateway.wire.budget import Budget, Quota
from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.incarnations import CLOSED_AT_ONCE

from .frames import (
    auth_response,
    close_consumer,
    close_producer,
    connect,
    connect_to,
    connected,
    error,
    failed,
    lookup,
    producer,
    producer_success,
    redirect_to,
    subscribe,
    success,
)
from .script import FORWARD_TOO, PASS_THROUGH, VERIFY, Outcome, Play, Talk, opening
from .services import ORIGIN, URL_1, URL_2
from .test_delays import Paced

LARGE = b"x" * 10_000
TOO_MANY = ServerError.TooManyRequests


def full(budget: Budget) -> Quota:
    """Have other connections of the same address use its part up."""
    other = Quota(budget, ORIGIN.host)
    other.take(budget.size)
    return other


# -- CONNECT -----------------------------------------------------------------------------------


def test_a_connect_is_kept_once_and_given_back_at_the_end() -> None:
    budget = Budget()
    talk = opening(budget=budget).client_says(connect(auth_data=LARGE)).dials(None)
    assert talk.said_to_broker().connect.auth_data == LARGE
    talk.broker_says(connected()).tells_client(connected())
    assert len(LARGE) < budget.taken < len(LARGE) + 200
    talk.opens().close()
    assert budget.taken == 0


def test_a_connect_for_which_there_is_no_room_is_refused() -> None:
    budget = Budget()
    other = full(budget)
    said = opening(budget=budget).client_says(connect()).refused(EndReason.OUT_OF_MEMORY)
    assert (said.error.error, said.error.message) == (TOO_MANY, NO_ROOM.text)
    other.close()
    opening(budget=budget).client_says(connect()).dials(None)


def test_a_connect_that_is_refused_is_not_kept() -> None:
    budget = Budget()
    talk = opening(budget=budget).client_says(connect(auth_data=LARGE)).dials(None)
    talk.said_to_broker()
    talk.broker_says(error(1, ServerError.ServiceNotReady, "no"))
    talk.refused(EndReason.BROKER_REFUSED)
    assert budget.taken == 0


def test_an_opening_that_is_given_up_keeps_nothing() -> None:
    budget = Budget()
    talk = opening(budget=budget).client_says(connect(auth_data=LARGE))
    assert budget.taken
    talk._steps.close()
    assert budget.taken == 0


def test_a_credential_that_was_verified_is_not_kept_where_it_is_of_no_use() -> None:
    kept = {}
    for mode in (PASS_THROUGH, VERIFY, FORWARD_TOO):
        budget = Budget()
        talk: Talk = opening(mode, budget=budget)
        talk.client_says(connect(auth_data=b"alice's token"))
        kept[mode] = budget.taken
    assert kept[VERIFY] == kept[PASS_THROUGH] - len(b"alice's token")
    assert kept[FORWARD_TOO] == kept[PASS_THROUGH]


def test_a_newer_credential_takes_its_room() -> None:
    play = Play()
    play.client(auth_response(LARGE)).forwards()
    assert play.hello.quota.taken > len(LARGE) - 100
    play.client(auth_response(b"short")).forwards()
    assert play.hello.quota.taken < 100
    full(play.listener.budget)
    play.client(auth_response(LARGE)).ended(EndReason.OUT_OF_MEMORY)
    play.session.close()


# -- producers, consumers and lookups ----------------------------------------------------------


def test_a_producer_for_which_there_is_no_room_is_refused() -> None:
    play = Play()
    other = full(play.listener.budget)
    play.client(producer(1)).refuses(error(1, TOO_MANY, NO_ROOM.text))
    assert play.services.admitted == []
    other.close()
    play.client(producer(1)).forwards()


def test_a_consumer_for_which_there_is_no_room_is_refused() -> None:
    play = Play()
    full(play.listener.budget)
    play.client(subscribe(1)).refuses_consumer(error(1, TOO_MANY, NO_ROOM.text))


@pytest.mark.parametrize("topic", ["t" * 1000, "\U0001f600" * 250])
def test_names_count_with_what_they_take(topic: str) -> None:
    play = Play()
    play.client(producer(1, topic=topic)).forwards()
    assert play.hello.quota.taken > 1000 + 3 * 1000
    play.broker(producer_success()).forwards()
    play.client(close_producer(1, request=2)).forwards()
    play.broker(success(2)).happens()
    assert play.hello.quota.taken == 0


def test_one_that_is_abandoned_is_still_kept() -> None:
    """The broker may have it, and close it later."""
    play = Play()
    play.client(subscribe(1)).forwards()
    taken = play.hello.quota.taken
    play.client(close_consumer(1, request=2)).forwards()
    play.broker(success(2)).happens()
    assert play.hello.quota.taken == taken
    play.session.close()
    assert play.listener.budget.taken == 0


def test_a_lookup_for_which_there_is_no_room_is_refused() -> None:
    play = Play()
    other = full(play.listener.budget)
    play.client(lookup(1)).refuses(failed(1, TOO_MANY, NO_ROOM.text))
    other.close()
    play.client(lookup(1)).forwards()
    play.broker(connect_to(URL_1, 1)).replaced()
    assert play.hello.quota.taken == 0


def test_a_lookup_that_is_chased_is_kept_until_it_is_answered() -> None:
    play = Play()
    play.client(lookup(1)).forwards()
    taken = play.hello.quota.taken
    _, token = play.broker(redirect_to(URL_2, 1)).started()
    assert play.hello.quota.taken == taken > 0
    play.resume(token, connect_to(URL_2, 1)).happens()
    assert play.hello.quota.taken == 0


def test_a_frame_that_waits_for_its_time_is_kept_until_then() -> None:
    play = Paced(Action.PRODUCE)
    token = play.later(play.client(producer(1)))
    assert play.hello.quota.taken > len(producer(1))
    other = full(play.listener.budget)
    assert play.client(producer(2, request=2)).words == "drop + inject"
    other.close()
    play.services.delay = 0.0
    play.due(token).happens()
    play.broker(error(1, ServerError.ServiceNotReady, "no")).happens()
    assert play.hello.quota.taken == 0


ASKED: dict[str, Callable[[Play], Outcome]] = {
    "a producer": lambda play: play.client(producer(1)),
    "a consumer": lambda play: play.client(subscribe(1)),
    "a lookup": lambda play: play.client(lookup(1)),
    "a credential": lambda play: play.client(auth_response(LARGE)),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_all_is_given_back_when_the_pair_ends(asked: Callable[[Play], Outcome]) -> None:
    play = Play()
    asked(play).forwards()
    assert play.listener.budget.taken > 0
    play.session.close()
    assert play.listener.budget.taken == 0


def test_a_frame_that_waits_is_given_back_when_the_pair_ends() -> None:
    play = Paced(Action.LOOKUP)
    play.later(play.client(lookup(1)))
    assert play.listener.budget.taken > 0
    play.session.close()
    assert play.listener.budget.taken == 0


def test_what_is_closed_in_steps_is_given_back_in_steps() -> None:
    play = Play()
    for id in range(2 * CLOSED_AT_ONCE + 1):
        play.client(producer(id, request=id)).happens()
    left = []
    while play.session.close():
        left.append(play.listener.budget.taken)
    assert left == sorted(left, reverse=True)
    assert len(left) >= 2
    assert play.listener.budget.taken == 0
