"""Long lists of topics are decided in slices, between which other pairs are served."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PeerError
from gateway.policy.access import Access
from gateway.policy.matching import RuleSet
from gateway.wire.account import Right
from gateway.wire.budget import Budget
from gateway.wire.contract import (
    Direction,
    Drop,
    EndReason,
    Forward,
    Replace,
    Sliced,
    ViolationError,
)
from gateway.wire.pulsar.field_counts import MOST_FIELDS
from gateway.wire.pulsar.frames import Kind
from gateway.wire.slices import UNITS
from tests.support.frames import data
from tests.support.slices import effects_of

from .frames import LATER, raw
from .script import Play
from .test_rights import (
    LISTED,
    LISTS,
    MANY,
    SECRET,
    Listing,
    RuledServices,
    appeared,
    changed,
    diff,
    guarded,
    hiding,
    of_namespace,
    ruled,
)


def steps_of(play: Play, frame: bytes) -> Any:
    """Return the slices in which a broker's list is decided."""
    (sliced,) = play.session.decide(Direction.TO_CLIENT, frame, 0.0)
    assert isinstance(sliced, Sliced)
    return sliced.steps


@LISTED
def test_a_short_list_is_decided_at_once(listing: Listing) -> None:
    few = [*MANY[: UNITS - 1], SECRET]
    (effect,) = hiding().session.decide(Direction.TO_CLIENT, listing(few), 0.0)
    assert effect == Replace(listing(few[:-1]))


@LISTED
def test_a_long_list_is_filtered_in_slices(listing: Listing) -> None:
    play = guarded(*((Right.LOOKUP, topic) for topic in MANY[1::2]))
    count, effects = effects_of(steps_of(play, listing(MANY)))
    assert count > len(MANY) // UNITS
    assert effects == (Replace(listing(MANY[::2])),)


@pytest.mark.parametrize("hidden", [slice(0, 1), slice(-1, None), slice(7, 9), slice(0, -1)])
def test_whichever_topics_of_a_long_list_are_hidden_the_others_stay(hidden: slice) -> None:
    topics = MANY[:100]
    play = guarded(*((Right.LOOKUP, topic) for topic in topics[hidden]))
    seen = [topic for topic in topics if topic not in topics[hidden]]
    for listing in LISTS:
        _, effects = effects_of(steps_of(play, listing(topics)))
        assert effects == (Replace(listing(seen)),)


@pytest.mark.parametrize("listing", [appeared, changed, diff])
def test_a_long_update_of_which_nothing_is_left_is_dropped(listing: Listing) -> None:
    play = guarded(*((Right.LOOKUP, topic) for topic in MANY))
    assert effects_of(steps_of(play, listing(MANY)))[1] == (Drop(),)


@LISTED
def test_a_long_list_without_hidden_topics_goes_on_as_it_came(listing: Listing) -> None:
    assert effects_of(steps_of(hiding(), listing(MANY, unknown=LATER)))[1] == (Forward(),)


def test_a_long_list_goes_on_as_it_was_read() -> None:
    """Another decoder could read a field that came twice as the first of both."""
    fields = data(2, MANY[0].encode()) * 20
    frame = raw(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, b"\x08\x01" + fields + b"\x08\x07")
    read = raw(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, b"\x08\x07" + fields)
    assert effects_of(steps_of(hiding(), frame))[1] == (Replace(read),)


def test_a_long_list_that_is_not_filtered_is_decoded_in_slices() -> None:
    """Where no rights are needed, commands with a text are read all the same."""
    topics = ["t" * 9] * (3 * MOST_FIELDS)
    frame = diff(topics, message="no")
    assert effects_of(steps_of(Play(), frame))[1] == (Forward(),)


def test_a_list_has_the_rights_of_one_moment() -> None:
    deny = [{"id": "d", "match": {"topic": MANY[0]}, "deny": ["lookup"]}]
    play = ruled(deny)
    steps = steps_of(play, of_namespace(MANY[:100]))
    next(steps)
    assert isinstance(play.services, RuledServices)
    play.services._access = Access(RuleSet(), {"clients": "closed"}, lambda _: None)
    assert effects_of(steps)[1] == (Replace(of_namespace(MANY[1:100])),)
    play.broker(of_namespace(MANY[:100])).replaces(of_namespace([]))


def test_a_list_that_takes_long_is_counted_in_the_budget() -> None:
    budget = Budget()
    play = hiding(budget=budget)
    before = budget.taken
    frame = of_namespace(MANY)
    steps = steps_of(play, frame)
    assert budget.taken > before + len(frame)
    effects_of(steps)
    assert budget.taken == before


def test_a_pair_may_end_while_a_list_is_decided() -> None:
    budget = Budget()
    play = hiding(budget=budget)
    steps = steps_of(play, of_namespace(MANY))
    next(steps)
    steps.close()
    play.session.close()
    assert budget.taken == 0


def test_a_list_for_which_there_is_no_room_ends_the_pair() -> None:
    play = hiding(budget=Budget(100_000))
    with pytest.raises(ViolationError) as ended:
        play.broker(of_namespace(MANY))
    assert ended.value.reason is EndReason.OUT_OF_MEMORY


def test_a_malformed_end_of_a_long_list_is_a_violation() -> None:
    body = b"\x08\x07" + b"".join(data(2, topic.encode()) for topic in MANY) + b"\x12\x7f"
    steps = steps_of(hiding(), raw(Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE, body))
    with pytest.raises(PeerError):
        effects_of(steps)
