"""The limits of subjects: by examples, and compared with a literal reading of docs/rules.md."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.wire.account import Action, Right
from gateway.wire.subject import Caller, Subject, TopicName
from tests.support.subjects import subject_of

PUBLISH = {"publish": {"messages": "100/s"}}
DISPATCH = {"dispatch": {"messages": "100/s"}}

CLIENT = subject_of(
    "persistent://acme/web/orders-partition-3",
    protocol="pulsar",
    listener="edge",
    connection=7,
    host="10.1.2.3",
    principal="app",
)


def rule(id: str = "a", limit: object = None, **parts: Any) -> Rule:
    return Rule.model_validate({"id": id, "limit": PUBLISH if limit is None else limit} | parts)


def applied(*rules: Rule, subject: Subject = CLIENT, action: str = Action.PRODUCE) -> list[str]:
    """Return the ids of the rules that apply."""
    return [limit.rule.id for limit in RuleSet.compile(rules).limits(subject, action)]


# -- whom a rule is for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "match",
    [
        {},
        {"tenant": "acme"},
        {"tenant": "ac*"},
        {"tenant": "*m*"},
        {"tenant": ["other", "acme"]},
        {"namespace": "web"},
        {"namespace": "acme/web"},
        {"namespace": "acme/*"},
        {"topic": "orders"},
        {"topic": "acme/web/orders"},
        {"topic": "persistent://acme/web/orders"},
        {"topic": "*://acme/*"},
        {"topic": "acme/*"},
        {"network": "10.0.0.0/8"},
        {"network": ["fd00::/8", "10.1.2.3"]},
        {"principal": "app", "listener": "e*", "protocol": "pulsar"},
    ],
)
def test_a_rule_that_matches_applies(match: object) -> None:
    assert applied(rule(match=match)) == ["a"]


@pytest.mark.parametrize(
    "match",
    [
        {"tenant": "acm"},
        {"tenant": "ACME"},
        {"tenant": "ac*x"},
        {"tenant": "acme", "principal": "other"},
        {"namespace": "acme"},
        {"topic": "web/orders"},
        {"topic": "non-persistent://*"},
        {"topic": "order.*"},
        {"network": "10.1.2.4"},
        {"network": "fd00::/8"},
    ],
)
def test_a_rule_that_does_not_match_does_not_apply(match: object) -> None:
    assert applied(rule(match=match)) == []


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [("a*a", False), ("*a*", True), ("a", True), ("a*", True), ("**", True), ("*aa*", False)],
)
def test_parts_of_a_pattern_do_not_overlap(pattern: str, matches: bool) -> None:
    assert bool(applied(rule(match={"tenant": pattern}), subject=subject_of("a/b/c"))) == matches


def test_a_pattern_of_many_parts_is_fast_on_a_long_name() -> None:
    subject = subject_of("a" * 100_000 + "/b/c")
    assert applied(rule(match={"tenant": "*a" * 50 + "*b"}), subject=subject) == []
    assert applied(rule(match={"tenant": "*a" * 50 + "*"}), subject=subject) == ["a"]


def test_unknown_values_match_no_pattern() -> None:
    nobody = subject_of("persistent://a/b/c")
    assert applied(rule(match={"principal": "*"}), subject=nobody) == []
    assert applied(rule(match={"network": "0.0.0.0/0"}), subject=nobody) == []


@pytest.mark.parametrize("field", ["tenant", "namespace", "principal", "subscription", "listener"])
def test_all_names_may_be_matched_by_an_expression(field: str) -> None:
    topic = TopicName("name", "name/name", "persistent://name/name/a")
    subject = Subject(Caller(principal="name", listener="name"), topic, "name")
    for pattern, fits in (("/n.m[e]/", True), ("/n.m/", False)):
        rule = Rule.model_validate({"id": "a", "match": {field: pattern}, "deny": ["consume"]})
        judged = RuleSet.compile([rule]).judge(subject, Right.CONSUME, closed=False)
        assert judged.allowed is not fits


def test_an_expression_with_commas_is_one() -> None:
    rule = Rule.model_validate({"id": "a", "match": {"topic": "/a{1,3}/"}, "deny": ["lookup"]})
    assert rule.match.topic == ("/a{1,3}/",)


def test_an_expression_is_as_wide_as_a_pattern() -> None:
    narrow = {"id": "n", "match": {"topic": "a/b/c"}, "override": True}
    wide = {"id": "w", "match": {"topic": "/a/b/./"}}
    limit = {"limit": {"publish": {"messages": "1/s"}}}
    rules = RuleSet.compile([Rule.model_validate(it | limit) for it in (narrow, wide)])
    topic = TopicName("a", "a/b", "persistent://a/b/c")
    found = rules.limits(Subject(Caller(), topic), "produce")
    assert [it.rule.id for it in found] == ["n"]
