"""Rate limits of requests: how many pass, and how long others wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.dimensions import Dimension
from gateway.policy.keys import FORGOTTEN_AT_ONCE
from gateway.policy.matching import AppliedLimit
from gateway.policy.requests import RequestLimiter
from gateway.policy.rules import LimitValues, Rule
from gateway.policy.supply import Supply

OPENS = Dimension.PRODUCER_CREATIONS
LONGEST = OPENS.longest_wait or 0.0
REQUESTS = [it for it in Dimension if it.longest_wait is not None]


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


def waits(
    limiter: RequestLimiter, limits: list[AppliedLimit], times: int, now: float = 0.0
) -> list[float]:
    """Return the waits of so many requests at once, none of which is refused."""
    found = [limiter.wait(limits, now) for _ in range(times)]
    assert all(isinstance(wait, float) for wait in found)
    return [float(wait) for wait in found if isinstance(wait, float)]


def test_the_burst_passes_at_once_and_other_requests_at_the_rate() -> None:
    found = waits(RequestLimiter(), [limit(10, 2)], 5)
    assert found == pytest.approx([0, 0, 0.1, 0.2, 0.3], abs=1e-5)


def test_a_later_request_waits_less() -> None:
    limiter, slow = RequestLimiter(), [limit(1)]
    waits(limiter, slow, 3)
    assert waits(limiter, slow, 1, now=1.5) == pytest.approx([1.5], abs=1e-5)
    assert waits(limiter, slow, 1, now=100.0) == [0]


@pytest.mark.parametrize("dimension", REQUESTS)
def test_a_request_refused_for_its_long_wait_takes_nothing(dimension: Dimension) -> None:
    limiter, slow = RequestLimiter(), limit(10, dimension=dimension)
    most = int(10 * (dimension.longest_wait or 0)) - 1
    waits(limiter, [slow], 1 + most)
    assert [limiter.wait([slow], 0.0) for _ in range(3)] == [slow] * 3
    assert waits(limiter, [slow], 1, now=0.1) == pytest.approx([most / 10], abs=1e-4)
    (figures,) = limiter.figures(0.1)
    assert (figures.waits, figures.refused) == (most + 1, 3)


def test_the_requests_of_an_opening_wait_ten_seconds_together_at_most() -> None:
    each = [Dimension.LOOKUPS, Dimension.LOOKUPS, OPENS]
    assert sum((dimension.longest_wait or 0) for dimension in each) == 10
    assert Dimension.CONSUMER_CREATIONS.longest_wait == LONGEST


def test_a_request_waits_for_its_strictest_limit() -> None:
    found = waits(RequestLimiter(), [limit(10, rule="wide"), limit(2, rule="narrow")], 3)
    assert found == pytest.approx([0, 0.5, 1], abs=1e-5)


def test_a_refused_request_takes_nothing_from_other_limits() -> None:
    limiter, wide = RequestLimiter(), limit(10, rule="wide")
    waits(limiter, [limit(0.01, rule="narrow")], 1)
    for _ in range(5):
        assert not isinstance(limiter.wait([wide, limit(0.01, rule="narrow")], 0.0), float)
    assert waits(limiter, [wide], 1) == [0]


def test_each_key_has_its_own_rate() -> None:
    limiter = RequestLimiter()
    waits(limiter, [limit(0.01, 1, "each", "acme")], 1)
    assert waits(limiter, [limit(0.01, 1, "each", "other")], 1) == [0]


def test_a_shadow_delays_nothing_and_counts_waits_and_refusals() -> None:
    limiter, shadow = RequestLimiter(), limit(1, rule="shadow", mode="shadow")
    assert waits(limiter, [shadow], 8) == [0] * 8
    (figures,) = limiter.figures(0.0)
    assert (figures.mode, figures.held, figures.refused) == ("shadow", 4, 3)
    assert figures.waits == 0
    assert figures.seconds == pytest.approx(1 + 2 + 3 + 4, abs=1e-4)


def test_a_rule_that_rejects_lets_no_producer_wait() -> None:
    limiter, strict = RequestLimiter(), limit(10, 2, action="reject")
    assert waits(limiter, [strict], 2) == [0, 0]
    assert limiter.wait([strict], 0.0) is strict
    assert waits(limiter, [strict], 1, now=0.1) == [0]


def test_a_rule_that_rejects_lets_consumers_wait() -> None:
    dimension = Dimension.CONSUMER_CREATIONS
    found = waits(RequestLimiter(), [limit(10, dimension=dimension, action="reject")], 2)
    assert found == pytest.approx([0, 0.1], abs=1e-5)


def test_a_limit_keeps_its_units_at_a_change_of_the_rate() -> None:
    limiter = RequestLimiter()
    waits(limiter, [limit(1, 3)], 2)
    assert waits(limiter, [limit(10, 3)], 2) == pytest.approx([0, 0.1], abs=1e-5)


def test_figures_count_waiting_requests_by_rule() -> None:
    limiter = RequestLimiter()
    for topic in "abbb":
        limiter.wait([limit(2, 1, "each", topic)], 0.0)
    (figures,) = limiter.figures(0.0)
    assert (figures.rule, figures.what, figures.mode) == ("each", OPENS.value, "enforce")
    assert (figures.limits, figures.waiting, figures.waits) == (2, 2, 2)
    assert figures.seconds == pytest.approx(1.5, abs=1e-4)
    (later,) = limiter.figures(0.6)
    assert later.waiting == 1


def test_figures_of_a_forgotten_limit_stay() -> None:
    limiter, once = RequestLimiter(), [limit(1)]
    waits(limiter, once, 2)
    limiter.wait([], 100.0)
    (figures,) = limiter.figures(100.0)
    assert (figures.limits, figures.waiting, figures.waits) == (0, 0, 1)


def test_unused_limits_are_forgotten() -> None:
    limiter = RequestLimiter()
    for number in range(100):
        limiter.wait([limit(1, 1, "each", str(number))], 0.0)
    limiter.wait([limit(1, 1, "other")], 0.5)
    assert len(limiter) == 101
    for _ in range(4):
        limiter.wait([limit(1, 1, "other")], 2.0)
    assert len(limiter) == 1, "all other limits are full again"


def test_limits_are_forgotten_step_by_step() -> None:
    """Otherwise the next request would wait until all made-up limits are forgotten."""
    limiter, many = RequestLimiter(), 2000
    for number in range(many):
        limiter.wait([limit(1, 1, "each", str(number))], 0.0)
    for steps in range(1, many):
        before = len(limiter)
        limiter.wait([limit(1, 1, "other")], 100.0 + steps)
        assert before - len(limiter) <= FORGOTTEN_AT_ONCE
        if len(limiter) == 1:
            break
    assert len(limiter) == 1
    assert steps <= 2 * many / FORGOTTEN_AT_ONCE


@given(
    st.floats(0.1, 1000),
    st.floats(1, 50),
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 20)), max_size=30),
)
def test_no_more_pass_than_the_rate_the_burst_and_one(
    rate: float, burst: float, comes: list[tuple[float, int]]
) -> None:
    limiter, one, now = RequestLimiter(), limit(rate, burst), 0.0
    went: list[float] = []
    for pause, number in comes:
        now += pause
        for _ in range(number):
            wait = limiter.wait([one], now)
            if isinstance(wait, float):
                assert 0 <= wait <= LONGEST
                went.append(now + wait)
    assert went == sorted(went), "no request overtakes another"
    for first, begin in enumerate(went):
        for last, end in enumerate(went[first:], start=1):
            assert last <= rate * (end - begin) + burst + 1


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2)), max_size=60))
def test_waits_for_another_limit_add_no_more_than_their_time(
    comes: list[tuple[float, int]],
) -> None:
    """Each of three topics has its own limit beside that for all."""
    limiter, every, now = RequestLimiter(), limit(5, 2, "every"), 0.0
    went: list[float] = []
    for pause, topic in comes:
        now += pause
        wait = limiter.wait([every, limit(1, 1, "each", str(topic))], now)
        if isinstance(wait, float):
            went.append(now + wait)
    went.sort()
    for first, begin in enumerate(went):
        for last, end in enumerate(went[first:], start=1):
            assert last <= 5 * (end - begin + LONGEST) + 2 + 1


def seldom(number: int, length: int = 1000) -> AppliedLimit:
    """Return a limit by a made-up name; a unit of it is earned in an hour."""
    return limit(1 / 3600, 1, "seldom", f"{number:06}".ljust(length, "x"))


def test_limits_by_made_up_names_are_bounded_in_bytes() -> None:
    limiter = RequestLimiter(most=1_000_000)
    for number in range(2_000):
        limiter.wait([seldom(number)], float(number))
    assert 300 <= len(limiter) <= 400
    short = RequestLimiter(most=1_000_000)
    for number in range(2_000):
        short.wait([seldom(number, length=10)], float(number))
    assert 600 <= len(short) <= 700


def test_the_limit_that_owes_most_is_not_forgotten_for_made_up_names() -> None:
    limiter, busy = RequestLimiter(most=100_000), limit(1, 1, "busy", "busy")
    waits(limiter, [busy], 3)
    for number in range(1_000):
        limiter.wait([limit(1, 1, "busy", f"{number}" + "x" * 1_000)], 0.0)
    assert waits(limiter, [busy], 1) == pytest.approx([3], abs=1e-4)


def test_shared_limits_by_made_up_names_are_bounded_too() -> None:
    limiter = RequestLimiter(Supply(), most=100_000)
    for number in range(1_000):
        limiter.wait([seldom(number)], 0.0)
    assert len(limiter) <= 40
