"""How many may be open at the same time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.matching import AppliedLimit
from gateway.policy.numbers import Numbers
from gateway.policy.rules import Dimension, LimitValues, Rule
from gateway.wire.contract import Account, Action
from tests.support.subjects import subject_of


def limit(most: int, rule: str = "few", *key: str, **fields: Any) -> AppliedLimit:
    found = Rule(id=rule, limit=LimitValues(producers=most), **fields)
    return AppliedLimit(found, Dimension.PRODUCERS, key, most, 0.0, found.mode)


def refused(numbers: Numbers) -> int:
    """By the only rule."""
    (figures,) = numbers.figures()
    return figures.refused


def account() -> Account:
    return Account(Action.PRODUCE, subject_of("t"))


def test_one_more_than_the_number_is_refused_by_its_rule() -> None:
    numbers, two = Numbers(), limit(2)
    for _ in range(2):
        assert numbers.full([two]) is None
        numbers.place(account(), [two])
    assert numbers.full([two]) is two
    assert (numbers.count(two), refused(numbers)) == (2, 1)


def test_one_that_goes_makes_room() -> None:
    numbers, one, opened = Numbers(), limit(1), account()
    numbers.place(opened, [one])
    numbers.release(opened)
    numbers.release(opened)
    assert numbers.full([one]) is None
    assert len(numbers) == 0, "nothing is kept of who is gone"


def test_each_key_has_its_own_number() -> None:
    numbers = Numbers()
    numbers.place(account(), [limit(1, "each", "acme")])
    assert numbers.full([limit(1, "each", "acme")]) is not None
    assert numbers.full([limit(1, "each", "other")]) is None


def test_the_strictest_of_several_refuses() -> None:
    numbers, wide, narrow = Numbers(), limit(9, "wide"), limit(1, "narrow")
    numbers.place(account(), [wide, narrow])
    assert numbers.full([wide, narrow]) is narrow


def test_a_shadow_only_counts() -> None:
    numbers, shadow = Numbers(), limit(1, "shadow", mode="shadow")
    numbers.place(account(), [shadow])
    assert numbers.full([shadow]) is None
    assert (numbers.count(shadow), refused(numbers)) == (1, 1)


def test_those_that_are_open_keep_their_place_under_a_smaller_number() -> None:
    numbers, opened = Numbers(), [account() for _ in range(3)]
    for each in opened:
        numbers.place(each, [limit(3)])
    for each in opened:
        numbers.place(each, [limit(1)])
    assert numbers.count(limit(1)) == 3
    for each in opened[:2]:
        numbers.release(each)
        assert numbers.full([limit(1)]) is not None
    numbers.release(opened[2])
    assert numbers.full([limit(1)]) is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["opens", "closes", "changes"]), st.integers(0, 5), st.integers(0, 2))
)


@given(STEPS)
def test_a_count_is_how_many_are_open_under_it(steps: list[tuple[str, int, int]]) -> None:
    numbers = Numbers()
    rules = [limit(3, f"r{number}") for number in range(3)]
    opened: list[tuple[Account, list[AppliedLimit]]] = []
    for what, pick, rule in steps:
        chosen = rules[rule:]
        if what == "opens" and numbers.full(chosen) is None:
            opened.append((account(), chosen))
            numbers.place(*opened[-1])
        elif what == "closes" and opened:
            gone, _ = opened.pop(pick % len(opened))
            numbers.release(gone)
        elif what == "changes" and opened:
            changed, _ = opened[pick % len(opened)]
            opened[pick % len(opened)] = (changed, chosen)
            numbers.place(changed, chosen)
        for each in rules:
            assert numbers.count(each) == sum(each in under for _, under in opened)
    assert len(numbers) == sum(numbers.count(each) > 0 for each in rules)
