"""Commands whose rights are asked of others wait for a response, in order; nothing else waits."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.account import Action, Right
from gateway.wire.contract import (
    AfterJob,
    Denial,
    Direction,
    Drop,
    Inject,
    Job,
    Refusal,
    Settle,
    Start,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.fields import RIGHTS
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.states import State
from gateway.wire.pulsar.undecided import MOST_QUESTIONS, UNKNOWN

from .frames import (
    TOPIC,
    close_consumer,
    close_producer,
    error,
    lookup,
    producer,
    producer_success,
    send,
    subscribe,
    unsubscribe,
)
from .script import Outcome, Play
from .services import FORBIDDEN
from .test_delays import Paced
from .test_rights import ASKS, EACH, SECRET, refusals, refused, txn

OTHER = "persistent://public/default/other"
TO_BROKER, TO_CLIENT = Direction.TO_BROKER, Direction.TO_CLIENT


def asking(*undecided: str, **settings: Any) -> Play:
    """A pair of which others know the rights on some topics."""
    play = Play(limited=True, **settings)
    play.services.forbidden = set()
    play.services.undecided = set(undecided)
    return play


def decided(play: Play, then: AfterJob, *forbidden: Right) -> Outcome:
    """Resume as soon as the rights are known."""
    play.services.undecided = set()
    play.services.forbidden = {(right, SECRET) for right in forbidden}
    return play.resume(then, b"")


def test_the_job_asks() -> None:
    job: Job
    job, _ = asking(SECRET).client(producer(1, topic=SECRET)).asked()
    steps = job.converse()
    assert isinstance(next(steps), Settle)
    with pytest.raises(StopIteration) as stopped:
        steps.send(None)
    assert stopped.value.value == b""


@EACH
def test_a_command_goes_on_once_it_is_allowed(kind: Kind) -> None:
    play = asking(SECRET)
    _, then = play.client(ASKS[kind](SECRET)).asked()
    assert play.services.asked == []
    decided(play, then).gives(Inject(TO_BROKER, ASKS[kind](SECRET)))


@EACH
def test_a_command_that_is_denied_is_refused_by_its_own_answer(kind: Kind) -> None:
    play = asking(SECRET)
    _, then = play.client(ASKS[kind](SECRET)).asked()
    told = refusals(ServerError.AuthorizationError, FORBIDDEN.text)[kind]
    refused(decided(play, then, RIGHTS[kind]), *told)
    assert play.services.admitted == []


@EACH
def test_without_an_answer_the_client_is_told_to_try_again(kind: Kind) -> None:
    play = asking(SECRET)
    _, then = play.client(ASKS[kind](SECRET)).asked()
    late = Denial(Refusal.TIMEOUT, "too late")
    told = refusals(ServerError.ServiceNotReady, UNKNOWN.text)[kind]
    refused(play.resume(then, late), *told)


def test_other_topics_do_not_wait() -> None:
    play = asking(SECRET)
    play.client(producer(1, request=1, topic=SECRET)).asked()
    play.client(producer(2, request=2, topic=OTHER)).forwards()
    play.client(lookup(3, OTHER)).forwards()


def test_a_close_waits_behind_the_opening() -> None:
    play = asking(SECRET)
    opening, close = producer(1, request=1, topic=SECRET), close_producer(1, request=2)
    _, then = play.client(opening).asked()
    play.client(close).drops()
    decided(play, then).gives(Inject(TO_BROKER, opening), Inject(TO_BROKER, close))


def test_what_closes_a_consumer_waits_behind_its_opening() -> None:
    play = asking(SECRET)
    opening = subscribe(1, request=1, topic=SECRET)
    _, then = play.client(opening).asked()
    play.client(unsubscribe(1, request=2)).drops()
    play.client(close_consumer(1, request=3)).drops()
    effects = decided(play, then).effects or ()
    assert [it.data for it in effects if isinstance(it, Inject)] == [
        opening,
        unsubscribe(1, request=2),
        close_consumer(1, request=3),
    ]


def test_an_allowed_topic_does_not_overtake_an_undecided_one_of_its_id() -> None:
    play = asking(SECRET)
    _, then = play.client(producer(1, request=1, topic=SECRET)).asked()
    play.client(producer(1, request=2, topic=OTHER)).drops()
    effects = decided(play, then, Right.PRODUCE).effects or ()
    told = error(1, ServerError.AuthorizationError, FORBIDDEN.text)
    assert [it for it in effects if isinstance(it, Inject)] == [
        Inject(TO_CLIENT, told),
        Inject(TO_BROKER, producer(1, request=2, topic=OTHER)),
    ]


def test_the_next_undecided_command_of_an_id_asks_in_its_turn() -> None:
    play = asking(SECRET, OTHER)
    _, then = play.client(producer(1, request=1, topic=SECRET)).asked()
    play.client(producer(1, request=2, topic=OTHER)).drops()
    play.services.undecided = {OTHER}
    effects = play.resume(then, b"").effects or ()
    assert effects[0] == Inject(TO_BROKER, producer(1, request=1, topic=SECRET))
    assert isinstance(effects[1], Start)
    assert len(effects) == 2


def test_each_topic_of_a_transaction_is_asked_for() -> None:
    play = asking(SECRET, OTHER)
    _, then = play.client(txn(TOPIC, SECRET, OTHER)).asked()
    play.services.undecided = {OTHER}
    (start,) = play.resume(then, b"").effects or ()
    assert isinstance(start, Start)
    decided(play, start.then).gives(Inject(TO_BROKER, txn(TOPIC, SECRET, OTHER)))


def test_who_answers_nothing_useful_is_not_asked_for_ever() -> None:
    play = asking(SECRET)
    _, then = play.client(producer(1, request=1, topic=SECRET)).asked()
    for _ in range(MOST_QUESTIONS):
        (start,) = play.resume(then, b"").effects or ()
        assert isinstance(start, Start)
        then = start.then
    refused(play.resume(then, b""), error(1, ServerError.ServiceNotReady, UNKNOWN.text))


def test_what_waits_has_a_bound() -> None:
    play = asking(SECRET, bounds=Bounds(delayed=2))
    play.client(producer(1, request=1, topic=SECRET)).asked()
    play.client(close_producer(1, request=2)).drops()
    for said in (producer(2, request=3, topic=SECRET), close_producer(1, request=3)):
        effects = play.client(said).effects or ()
        assert effects[0] == Drop()
        assert isinstance(effects[1], Inject)
        assert b"too many requests wait" in effects[1].data


def test_room_is_given_back() -> None:
    play = asking(SECRET, bounds=Bounds(delayed=1))
    for number in range(3):
        play.services.undecided = {SECRET}
        _, then = play.client(producer(number, request=number, topic=SECRET)).asked()
        decided(play, then).gives(Inject(TO_BROKER, producer(number, request=number, topic=SECRET)))


def test_a_command_that_is_allowed_may_still_have_to_wait_for_a_rate() -> None:
    play = Paced()
    play.services.forbidden, play.services.undecided = set(), {SECRET}
    _, then = play.client(producer(1, request=1, topic=SECRET)).asked()
    assert play.services.counted == []
    later = play.later(decided(play, then))
    play.due(later).gives(Inject(TO_BROKER, producer(1, request=1, topic=SECRET)))


def test_a_right_that_becomes_unknown_while_a_command_waits_for_a_rate_is_asked_for() -> None:
    play = Paced()
    play.services.forbidden = set()
    later = play.later(play.client(producer(1, request=1, topic=SECRET)))
    play.services.undecided = {SECRET}
    _, then = play.due(later).asked()
    play.services.delay = 0.0
    decided(play, then).gives(Inject(TO_BROKER, producer(1, request=1, topic=SECRET)))


def test_an_open_producer_sends_while_another_topic_is_asked_for() -> None:
    play = asking(SECRET)
    play.client(producer(1, request=1)).forwards()
    play.broker(producer_success(1)).forwards()
    play.client(producer(1, request=2, topic=SECRET)).asked()
    play.client(send(1)).passes()
    assert play.state(Action.PRODUCE) is State.OPEN


def test_answers_after_the_end_change_nothing() -> None:
    play = asking(SECRET)
    _, then = play.client(producer(1, request=1, topic=SECRET)).asked()
    play.session.close()
    play.resume(then, b"").gives()


def test_a_gateway_that_stops_waits_for_the_answer() -> None:
    play = asking(SECRET)
    _, then = play.client(lookup(1, SECRET)).asked()
    assert play.leave().effects is not None
    decided(play, then).happens()
