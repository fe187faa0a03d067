"""Limits of the number of open producers and consumers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.concurrency import ConcurrencyLimiter
from gateway.policy.dimensions import Dimension
from gateway.policy.matching import AppliedLimit
from gateway.policy.rules import LimitValues, Rule
from gateway.wire.account import Account, Action
from tests.support.subjects import subject_of


def limit(most: int, rule: str = "few", *key: str, **fields: Any) -> AppliedLimit:
    found = Rule(id=rule, limit=LimitValues(producers=most), **fields)
    return AppliedLimit(found, Dimension.PRODUCERS, key, most, 0.0, found.mode)


def refused(limiter: ConcurrencyLimiter) -> int:
    """Return the refusals of the only rule."""
    (figures,) = limiter.figures()
    return figures.refused


def account() -> Account:
    return Account(Action.PRODUCE, subject_of("t"))


def test_the_fullest_limit_is_told_with_whose_it_is() -> None:
    limiter = ConcurrencyLimiter()
    for number, most, key in ((1, 4, "acme"), (3, 4, "globex"), (1, 2, "initech")):
        for _ in range(number):
            limiter.admit(account(), [limit(most, "few", key)])
    (figures,) = limiter.figures()
    assert (figures.fill, figures.fullest) == (0.75, "globex")


def test_one_account_more_than_the_limit_is_refused() -> None:
    limiter, two = ConcurrencyLimiter(), limit(2)
    for _ in range(2):
        assert limiter.find_full([two]) is None
        limiter.admit(account(), [two])
    assert limiter.find_full([two]) is two
    assert (limiter.count(two), refused(limiter)) == (2, 1)


def test_a_closed_account_makes_room() -> None:
    limiter, one, opened = ConcurrencyLimiter(), limit(1), account()
    limiter.admit(opened, [one])
    limiter.release(opened)
    limiter.release(opened)
    assert limiter.find_full([one]) is None
    assert len(limiter) == 0, "closed accounts leave nothing behind"


def test_each_key_has_its_own_count() -> None:
    limiter = ConcurrencyLimiter()
    limiter.admit(account(), [limit(1, "each", "acme")])
    assert limiter.find_full([limit(1, "each", "acme")]) is not None
    assert limiter.find_full([limit(1, "each", "other")]) is None


def test_the_strictest_of_several_limits_refuses() -> None:
    limiter, wide, narrow = ConcurrencyLimiter(), limit(9, "wide"), limit(1, "narrow")
    limiter.admit(account(), [wide, narrow])
    assert limiter.find_full([wide, narrow]) is narrow


def test_a_shadow_counts_and_refuses_nothing() -> None:
    limiter, shadow = ConcurrencyLimiter(), limit(1, "shadow", mode="shadow")
    limiter.admit(account(), [shadow])
    assert limiter.find_full([shadow]) is None
    assert (limiter.count(shadow), refused(limiter)) == (1, 1)


def test_open_accounts_still_count_under_a_lower_limit() -> None:
    limiter, opened = ConcurrencyLimiter(), [account() for _ in range(3)]
    for each in opened:
        limiter.admit(each, [limit(3)])
    for each in opened:
        limiter.admit(each, [limit(1)])
    assert limiter.count(limit(1)) == 3
    for each in opened[:2]:
        limiter.release(each)
        assert limiter.find_full([limit(1)]) is not None
    limiter.release(opened[2])
    assert limiter.find_full([limit(1)]) is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["opens", "closes", "changes"]), st.integers(0, 5), st.integers(0, 2))
)


@given(STEPS)
def test_a_count_is_the_number_of_open_accounts(steps: list[tuple[str, int, int]]) -> None:
    limiter = ConcurrencyLimiter()
    rules = [limit(3, f"r{number}") for number in range(3)]
    opened: list[tuple[Account, list[AppliedLimit]]] = []
    for what, pick, rule in steps:
        chosen = rules[rule:]
        if what == "opens" and limiter.find_full(chosen) is None:
            opened.append((account(), chosen))
            limiter.admit(*opened[-1])
        elif what == "closes" and opened:
            gone, _ = opened.pop(pick % len(opened))
            limiter.release(gone)
        elif what == "changes" and opened:
            changed, _ = opened[pick % len(opened)]
            opened[pick % len(opened)] = (changed, chosen)
            limiter.admit(changed, chosen)
        for each in rules:
            assert limiter.count(each) == sum(each in under for _, under in opened)
    assert len(limiter) == sum(limiter.count(each) > 0 for each in rules)
