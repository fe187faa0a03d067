"""Which limit suits what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.limits.deciding import Limit, Policy, Seen, Undecided, What, decide, rounded

POLICY = Policy()

USUAL = Seen("acme", What.PUBLISH_MESSAGES, 10, 1000, usual=1000, most=1500, peak=2000, held=0)


def limit(seen: Seen = USUAL, current: int | None = None, **policy: Any) -> Limit:
    found = decide(seen, replace(POLICY, **policy), current)
    assert isinstance(found, Limit)
    return found


def test_a_limit_is_above_the_usual_rate_by_the_headroom() -> None:
    assert limit().rate == 1500
    assert limit(headroom=2.0).rate == 2000


def test_the_burst_lets_the_highest_second_pass() -> None:
    found = limit()
    assert found.burst + found.rate >= USUAL.peak * POLICY.headroom


def test_a_limit_is_between_floor_and_ceiling() -> None:
    assert limit(replace(USUAL, usual=1)).rate == 100
    assert limit(replace(USUAL, usual=1e12)).rate == 10**9
    assert limit(replace(USUAL, what=What.DISPATCH_BYTES, usual=1)).rate == 100_000


def test_what_was_held_back_passes_from_now_on() -> None:
    assert limit(replace(USUAL, held=4000)).rate == 6000
    assert limit(replace(USUAL, held=4000), current=5500).rate == 5500
    assert limit(replace(USUAL, usual=4000, held=5900), current=5500).rate >= 5900


def test_a_limit_stays_where_the_new_one_is_not_much_different() -> None:
    assert limit(current=1300).rate == 1300
    assert limit(current=1700).rate == 1700
    assert limit(current=1000).rate == 1500
    assert limit(current=3000).rate == 1500


def test_nothing_is_recommended_after_few_days() -> None:
    found = decide(replace(USUAL, days=2), POLICY)
    assert found == Undecided(replace(USUAL, days=2), "had traffic on 2 of 3 days")


@pytest.mark.parametrize("tenant", ["a*", "/x/", "${HOME}", "a,b", "", "é", "a b"])
def test_names_that_rules_would_read_otherwise_get_none(tenant: str) -> None:
    assert isinstance(decide(replace(USUAL, tenant=tenant), POLICY), Undecided)


@given(st.floats(0.001, 1e15))
def test_rounded_numbers_are_short_and_never_below(value: float) -> None:
    found = rounded(value)
    assert value <= found <= max(value * 1.1 + 1, 1)
    assert len(str(found).rstrip("0")) <= 2


rates = st.floats(0, 1e9)


@given(rates, rates, rates, st.none() | st.integers(100, 10**9))
def test_no_limit_is_below_what_was_held(
    usual: float, held: float, peak: float, current: int | None
) -> None:
    found = limit(replace(USUAL, usual=usual, held=held, peak=peak), current)
    assert found.rate >= min(held, POLICY.ceilings[0])
    assert found.burst >= 1
