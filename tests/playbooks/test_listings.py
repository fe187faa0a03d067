"""Requests for lists of topics: they count as lookups, and one of a connection is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.wire.account import Action
from gateway.wire.budget import Budget
from gateway.wire.contract import Drop, Effects, Forward, Later
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.listings import LONGEST
from tests.support.slices import effects_of

from .frames import error, frame
from .script import Play
from .test_delays import TOO_OFTEN, Paced, to_broker
from .test_rights import Listing, of_namespace, snapshot, watched
from .test_slices import steps_of

NAMESPACE = "tenant/ns"
MANY = [f"persistent://{NAMESPACE}/t-{number}" for number in range(4_000)]


def topics(id: int) -> bytes:
    return frame(Kind.GET_TOPICS_OF_NAMESPACE, request_id=id, namespace=NAMESPACE)


def watch(id: int) -> bytes:
    fields: dict[str, Any] = {"namespace": NAMESPACE, "topics_pattern": "t.*"}
    return frame(Kind.WATCH_TOPIC_LIST, request_id=id, watcher_id=3, **fields)


def watch_scalable(id: int) -> bytes:
    return frame(Kind.WATCH_SCALABLE_TOPICS, watch_id=id, namespace=NAMESPACE)


LISTS: dict[str, tuple[Callable[[int], bytes], Listing, str]] = {
    "topics": (topics, of_namespace, "request_id"),
    "watch": (watch, watched, "request_id"),
    "watch of scalable topics": (watch_scalable, snapshot, "watch_id"),
}
each = pytest.mark.parametrize(("ask", "listing", "id"), LISTS.values(), ids=LISTS)


def refused(id: int, text: str, code: ServerError.ValueType) -> dict[str, bytes]:
    told: dict[str, Any] = {"watch_id": id, "error": code, "message": text}
    by_error = error(id, code, text)
    own = frame(Kind.WATCH_SCALABLE_TOPICS_UPDATE, **told)
    return {"topics": by_error, "watch": by_error, "watch of scalable topics": own}


# -- how often -----------------------------------------------------------------------------------


@each
def test_a_request_for_a_list_counts_as_a_lookup(
    ask: Callable[[int], bytes], listing: Listing, id: str
) -> None:
    play = Paced()
    then = play.later(play.client(ask(7)))
    (counted,) = play.services.counted
    assert (counted.action, counted.subject.principal) == (Action.LOOKUP, "alice")
    play.due(then).gives(to_broker(ask(7)))


@pytest.mark.parametrize("kind", LISTS)
def test_one_that_would_wait_too_long_is_refused(kind: str) -> None:
    play = Paced()
    play.services.delay = TOO_OFTEN
    told = refused(7, TOO_OFTEN.text, ServerError.ServiceNotReady)
    play.client(LISTS[kind][0](7)).refuses(told[kind])


# -- one at a time -------------------------------------------------------------------------------


@each
def test_one_waits_until_the_one_before_is_answered(
    ask: Callable[[int], bytes], listing: Listing, id: str
) -> None:
    play = Play(limited=True)
    play.client(ask(7)).forwards()
    patience(play.client(ask(8)).effects)
    play.client(ask(9)).drops()
    answer = listing(["a"], **{id: 7})
    assert starts(play.broker(answer).effects) == [Forward(), to_broker(ask(8))]
    answer = listing(["a"], **{id: 8})
    assert starts(play.broker(answer).effects) == [Forward(), to_broker(ask(9))]
    play.broker(listing(["a"], **{id: 9})).forwards()
    play.client(ask(10)).forwards()


def test_an_error_is_an_answer() -> None:
    play = Play(limited=True)
    play.client(topics(7)).forwards()
    play.client(watch(8)).happens()
    assert to_broker(watch(8)) in starts(play.broker(error(7)).effects)


def test_the_answer_to_another_request_is_none() -> None:
    play = Play(limited=True)
    play.client(topics(7)).forwards()
    play.client(topics(8)).happens()
    play.broker(error(6)).happens()
    play.broker(of_namespace(["a"], request_id=8)).forwards()


def test_one_that_is_never_answered_is_not_awaited_for_ever() -> None:
    play = Play(limited=True)
    play.client(topics(7)).forwards()
    then = patience(play.client(topics(8)).effects)
    assert then(LONGEST) == (to_broker(topics(8)),)
    assert then(LONGEST) == ()


def test_a_long_list_is_answered_after_its_last_slice() -> None:
    play = Play(limited=True)
    play.client(topics(7)).forwards()
    play.client(topics(8)).happens()
    _, effects = effects_of(steps_of(play, of_namespace(MANY, request_id=7)))
    assert starts(effects)[-1] == to_broker(topics(8))


def test_those_that_wait_have_a_bound_and_count_in_the_budget() -> None:
    budget = Budget()
    play = Play(limited=True, budget=budget, bounds=Bounds(delayed=2))
    play.client(topics(1)).forwards()
    before = budget.taken
    play.client(topics(2)).happens()
    play.client(topics(3)).drops()
    assert budget.taken > before
    text = "too many requests wait on this connection"
    play.client(topics(4)).refuses(error(4, ServerError.ServiceNotReady, text))
    play.session.close()
    assert budget.taken == 0


def test_a_pair_whose_requests_wait_does_not_leave() -> None:
    play = Play(limited=True)
    play.client(topics(7)).forwards()
    play.client(topics(8)).happens()
    assert play.leave().effects is not None
    play.broker(of_namespace(["a"], request_id=7)).happens()
    assert play.leave().effects is None


def test_they_pass_at_once_where_there_are_no_rules() -> None:
    play = Play()
    for id in (7, 8):
        play.client(topics(id)).forwards()


def patience(effects: Effects | None) -> Callable[[float], Effects]:
    """Return what is called if there is no answer."""
    drop, later = effects or ()
    assert drop == Drop()
    assert isinstance(later, Later)
    assert later.until == LONGEST
    return later.then


def starts(effects: Effects | None) -> list[Any]:
    """Return the effects that come at once."""
    return [effect for effect in effects or () if not isinstance(effect, Later)]
