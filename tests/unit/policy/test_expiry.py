"""Moments as people write them, and rules that expire."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.expiry import moment, written
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.wire.account import Action, Right
from tests.support.examples import examples
from tests.support.subjects import subject_of

NOON = datetime(2026, 12, 24, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-12-24", "2026-12-25T00:00:00Z"),
        ("2026-12-31", "2027-01-01T00:00:00Z"),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
        ("2026-12-24T18:00Z", "2026-12-24T18:00:00Z"),
        ("2026-12-24T18:00:30+02:00", "2026-12-24T16:00:30Z"),
    ],
)
def test_a_day_ends_at_midnight_and_a_moment_is_in_utc(text: str, shown: str) -> None:
    assert written(moment(text)) == shown
    assert moment(shown) == moment(text)


@pytest.mark.parametrize(
    "value",
    [
        "2026-13-01",
        "2026-12-24 18:00",
        "2026-12-24T18:00:00",
        "20261224",
        "2026-W52-4",
        "tomorrow",
        "9999-12-31",
        "0001-01-01T00:00+09:00",
        "2026-12-24\n",
        "",
        2026,
        None,
        NOON,
    ],
)
def test_what_is_no_moment_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a moment; 2026-12-24 for the end of that day"):
        moment(value)


@examples(200)
@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))  # noqa: DTZ001
def test_every_moment_is_read_as_it_is_written(at: datetime) -> None:
    at = at.replace(tzinfo=UTC, microsecond=0)
    assert moment(written(at)) == at


# -- rules that expire -----------------------------------------------------------------------


def rule(id: str, expires: str | None = None, **parts: object) -> Rule:
    parts = parts or {"limit": {"publish": {"messages": "10/s"}}}
    return Rule.model_validate({"id": id} | parts | ({"expires": expires} if expires else {}))


SUBJECT = subject_of("persistent://acme/web/orders", listener="l", principal="app")
ENDS = "2026-12-24T12:00:00Z"


def limiting(rules: RuleSet) -> list[str]:
    return [it.rule.id for it in rules.limits(SUBJECT, Action.PRODUCE)]


def test_a_rule_limits_until_the_second_in_which_it_expires() -> None:
    rules, noon = [rule("stays"), rule("ends", ENDS)], NOON.timestamp()
    assert limiting(RuleSet.compile(rules, noon - 0.001)) == ["stays", "ends"]
    assert limiting(RuleSet.compile(rules, noon)) == ["stays"]
    assert limiting(RuleSet.compile(rules)) == ["stays", "ends"], "without a time none has expired"


def test_an_expired_rule_neither_denies_allows_nor_overrides() -> None:
    rules = [
        rule("no", ENDS, deny=["produce"]),
        rule("yes", ENDS, allow=["consume"]),
        rule("wide"),
        rule("narrow", ENDS, limit={"publish": {"messages": "99/s"}}, override=True),
    ]
    before, after = (RuleSet.compile(rules, NOON.timestamp() + it) for it in (-1, 1))
    assert not before.judge(SUBJECT, Right.PRODUCE, closed=False).allowed
    assert after.judge(SUBJECT, Right.PRODUCE, closed=False).allowed
    assert before.judge(SUBJECT, Right.CONSUME, closed=True).allowed
    assert not after.judge(SUBJECT, Right.CONSUME, closed=True).allowed
    assert (limiting(before), limiting(after)) == (["narrow"], ["wide"])
    assert after.dimensions() == RuleSet.compile(rules[2:3]).dimensions()


def test_a_set_knows_its_expired_rules_and_when_the_next_one_expires() -> None:
    rules = [rule("late", "2026-12-26"), rule("ends", ENDS), rule("next", "2026-12-25"), rule("x")]
    found = RuleSet.compile(rules, NOON.timestamp())
    assert list(found) == rules
    assert len(found) == 4
    assert found.rule("ends") == rules[1]
    assert list(found.expired) == ["ends"]
    assert found.next_expiry == datetime(2026, 12, 26, tzinfo=UTC).timestamp()
    assert RuleSet.compile(rules[3:]).next_expiry == math.inf


def test_an_explanation_says_what_has_expired() -> None:
    found = RuleSet.compile([rule("ends", ENDS)], NOON.timestamp()).explain(SUBJECT, "produce")
    assert [(it.rule.id, it.why) for it in found.not_applied] == [
        ("ends", f"it expired at {ENDS}"),
    ]
    assert found.applied == ()


def test_a_dissolved_set_is_empty() -> None:
    rules = RuleSet.compile([rule("ends", ENDS), rule("x")], NOON.timestamp())
    for _ in rules.dissolve():
        pass
    assert (len(rules), rules.expired) == (0, {})
