"""How often something may be done, and for how long others wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.events import PATIENCE, Events
from gateway.policy.keys import FORGOTTEN_AT_ONCE
from gateway.policy.matching import AppliedLimit
from gateway.policy.rules import Dimension, LimitValues, Rule
from gateway.policy.supply import Supply

OPENS = Dimension.PRODUCER_CREATIONS


def limit(
    rate: float,
    burst: float = 1,
    rule: str = "seldom",
    *key: str,
    dimension: Dimension = OPENS,
    **fields: Any,
) -> AppliedLimit:
    values: dict[str, Any] = {dimension: f"{rate:f}/s"}
    found = Rule(id=rule, limit=LimitValues(**values), **fields)
    return AppliedLimit(found, dimension, key, rate, burst, found.mode)


def waits(events: Events, limits: list[AppliedLimit], times: int, now: float = 0.0) -> list[float]:
    """Of so many at once, none of which is refused."""
    found = [events.wait(limits, now) for _ in range(times)]
    assert all(isinstance(wait, float) for wait in found)
    return [float(wait) for wait in found if isinstance(wait, float)]


def test_the_burst_goes_at_once_and_others_at_the_rate() -> None:
    found = waits(Events(), [limit(10, 2)], 5)
    assert found == pytest.approx([0, 0, 0.1, 0.2, 0.3], abs=1e-5)


def test_who_comes_later_waits_less() -> None:
    events, slow = Events(), [limit(1)]
    waits(events, slow, 3)
    assert waits(events, slow, 1, now=1.5) == pytest.approx([1.5], abs=1e-5)
    assert waits(events, slow, 1, now=100.0) == [0]


@pytest.mark.parametrize("dimension", PATIENCE)
def test_who_would_wait_for_too_long_is_refused_and_takes_nothing(dimension: Dimension) -> None:
    events, slow = Events(), limit(10, dimension=dimension)
    most = int(10 * PATIENCE[dimension]) - 1
    waits(events, [slow], 1 + most)
    assert [events.wait([slow], 0.0) for _ in range(3)] == [slow] * 3
    assert waits(events, [slow], 1, now=0.1) == pytest.approx([most / 10], abs=1e-4)
    (figures,) = events.figures(0.1)
    assert (figures.waits, figures.refused) == (most + 1, 3)


def test_partitions_a_lookup_and_what_is_opened_wait_ten_seconds_together() -> None:
    each = [Dimension.LOOKUPS, Dimension.LOOKUPS, OPENS]
    assert sum(PATIENCE[dimension] for dimension in each) == 10
    assert PATIENCE[Dimension.CONSUMER_CREATIONS] == PATIENCE[OPENS]


def test_the_strictest_limit_says_how_long() -> None:
    found = waits(Events(), [limit(10, rule="wide"), limit(2, rule="narrow")], 3)
    assert found == pytest.approx([0, 0.5, 1], abs=1e-5)


def test_what_one_limit_refuses_costs_no_other_one() -> None:
    events, wide = Events(), limit(10, rule="wide")
    waits(events, [limit(0.01, rule="narrow")], 1)
    for _ in range(5):
        assert not isinstance(events.wait([wide, limit(0.01, rule="narrow")], 0.0), float)
    assert waits(events, [wide], 1) == [0]


def test_each_key_has_its_own_rate() -> None:
    events = Events()
    waits(events, [limit(0.01, 1, "each", "acme")], 1)
    assert waits(events, [limit(0.01, 1, "each", "other")], 1) == [0]


def test_a_shadow_lets_all_pass_and_counts_what_it_would_have_done() -> None:
    events, shadow = Events(), limit(1, rule="shadow", mode="shadow")
    assert waits(events, [shadow], 8) == [0] * 8
    (figures,) = events.figures(0.0)
    assert (figures.mode, figures.held, figures.refused) == ("shadow", 4, 3)
    assert figures.waits == 0
    assert figures.seconds == pytest.approx(1 + 2 + 3 + 4, abs=1e-4)


def test_a_rule_that_rejects_lets_no_producer_wait() -> None:
    events, strict = Events(), limit(10, 2, action="reject")
    assert waits(events, [strict], 2) == [0, 0]
    assert events.wait([strict], 0.0) is strict
    assert waits(events, [strict], 1, now=0.1) == [0]


def test_a_rule_that_rejects_has_consumers_wait_like_any_other() -> None:
    dimension = Dimension.CONSUMER_CREATIONS
    found = waits(Events(), [limit(10, dimension=dimension, action="reject")], 2)
    assert found == pytest.approx([0, 0.1], abs=1e-5)


def test_other_figures_go_on_from_what_was_earned() -> None:
    events = Events()
    waits(events, [limit(1, 3)], 2)
    assert waits(events, [limit(10, 3)], 2) == pytest.approx([0, 0.1], abs=1e-5)


def test_figures_say_who_waits_for_which_rule() -> None:
    events, found = Events(), [limit(2, 1, "each", topic) for topic in ("a", "b", "b", "b")]
    for each in found:
        events.wait([each], 0.0)
    (figures,) = events.figures(0.0)
    assert (figures.rule, figures.what, figures.mode) == ("each", OPENS.value, "enforce")
    assert (figures.limits, figures.waiting, figures.waits) == (2, 2, 2)
    assert figures.seconds == pytest.approx(1.5, abs=1e-4)
    (later,) = events.figures(0.6)
    assert later.waiting == 1


def test_figures_stay_when_a_limit_is_forgotten() -> None:
    events, once = Events(), [limit(1)]
    waits(events, once, 2)
    events.wait([], 100.0)
    (figures,) = events.figures(100.0)
    assert (figures.limits, figures.waiting, figures.waits) == (0, 0, 1)


def test_what_nobody_asks_of_is_forgotten() -> None:
    events = Events()
    for number in range(100):
        events.wait([limit(1, 1, "each", str(number))], 0.0)
    events.wait([limit(1, 1, "other")], 0.5)
    assert len(events) == 101
    for _ in range(4):
        events.wait([limit(1, 1, "other")], 2.0)
    assert len(events) == 1, "all others have earned again what was taken"


def test_many_are_forgotten_step_by_step() -> None:
    """Who asks next would else wait until all are that others made up."""
    events, many = Events(), 2000
    for number in range(many):
        events.wait([limit(1, 1, "each", str(number))], 0.0)
    for steps in range(1, many):
        before = len(events)
        events.wait([limit(1, 1, "other")], 100.0 + steps)
        assert before - len(events) <= FORGOTTEN_AT_ONCE
        if len(events) == 1:
            break
    assert len(events) == 1
    assert steps <= 2 * many / FORGOTTEN_AT_ONCE


@given(
    st.floats(0.1, 1000),
    st.floats(1, 50),
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 20)), max_size=30),
)
def test_never_more_than_rate_and_burst_and_one_go_on(
    rate: float, burst: float, comes: list[tuple[float, int]]
) -> None:
    events, one, now = Events(), limit(rate, burst), 0.0
    went: list[float] = []
    for pause, number in comes:
        now += pause
        for _ in range(number):
            wait = events.wait([one], now)
            if isinstance(wait, float):
                assert 0 <= wait <= PATIENCE[OPENS]
                went.append(now + wait)
    assert went == sorted(went), "nobody overtakes"
    for first, begin in enumerate(went):
        for last, end in enumerate(went[first:], start=1):
            assert last <= rate * (end - begin) + burst + 1


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2)), max_size=60))
def test_what_waits_for_another_limit_adds_no_more_than_its_wait(
    comes: list[tuple[float, int]],
) -> None:
    """Each of three topics has its own limit beside that of all."""
    events, every, now = Events(), limit(5, 2, "every"), 0.0
    went: list[float] = []
    for pause, topic in comes:
        now += pause
        wait = events.wait([every, limit(1, 1, "each", str(topic))], now)
        if isinstance(wait, float):
            went.append(now + wait)
    went.sort()
    for first, begin in enumerate(went):
        for last, end in enumerate(went[first:], start=1):
            assert last <= 5 * (end - begin + PATIENCE[OPENS]) + 2 + 1


def seldom(number: int, length: int = 1000) -> AppliedLimit:
    """A limit by a name that a client made up; it owes for an hour."""
    return limit(1 / 3600, 1, "seldom", f"{number:06}".ljust(length, "x"))


def test_limits_by_names_that_clients_make_up_are_bounded_in_bytes() -> None:
    events = Events(most=1_000_000)
    for number in range(2_000):
        events.wait([seldom(number)], float(number))
    assert 300 <= len(events) <= 400
    short = Events(most=1_000_000)
    for number in range(2_000):
        short.wait([seldom(number, length=10)], float(number))
    assert 600 <= len(short) <= 700


def test_what_owes_most_is_not_forgotten_for_what_clients_make_up() -> None:
    events, busy = Events(most=100_000), limit(1, 1, "busy", "busy")
    waits(events, [busy], 3)
    for number in range(1_000):
        events.wait([limit(1, 1, "busy", f"{number}" + "x" * 1_000)], 0.0)
    assert waits(events, [busy], 1) == pytest.approx([3], abs=1e-4)


def test_shared_limits_by_names_that_clients_make_up_are_bounded_too() -> None:
    events = Events(Supply(), most=100_000)
    for number in range(1_000):
        events.wait([seldom(number)], 0.0)
    assert len(events) <= 40
