"""Fields of rules, their defaults, and mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.policy.dimensions import DIMENSIONS, Dimension
from gateway.policy.rules import Rule
from gateway.wire.account import Action, Right


def rule(limit: object = None, **parts: Any) -> Rule:
    limit = {"lookups": "1/s"} if limit is None else limit
    return Rule.model_validate({"id": "a", "limit": limit} | parts)


def test_every_dimension_belongs_to_one_action() -> None:
    assert sum(map(len, DIMENSIONS.values())) == len(Dimension)
    assert set(DIMENSIONS) == set(Action)


def test_values_are_units_per_second() -> None:
    limit = {
        "publish": {"messages": "6000/m", "bytes": "10MB/s"},
        "dispatch": {"messages": "1/s"},
        "consumers": 7,
    }
    assert dict(rule(limit).limits) == {
        Dimension.PUBLISH_MESSAGES: 100,
        Dimension.PUBLISH_BYTES: 1e7,
        Dimension.DISPATCH_MESSAGES: 1,
        Dimension.CONSUMERS: 7,
    }


@pytest.mark.parametrize(
    ("dimension", "burst"),
    [
        (Dimension.PUBLISH_MESSAGES, 10),
        (Dimension.DISPATCH_BYTES, 10),
        (Dimension.LOOKUPS, 100),
        (Dimension.CONNECTS, 100),
        (Dimension.PRODUCERS, 0),
    ],
)
def test_the_default_burst_depends_on_the_dimension(dimension: Dimension, burst: float) -> None:
    assert rule().burst_of(dimension, 100) == burst


def test_the_burst_of_a_rule_is_for_all_its_rates() -> None:
    found = rule(burst="2s")
    assert found.burst_of(Dimension.PUBLISH_MESSAGES, 100) == 200
    assert found.burst_of(Dimension.LOOKUPS, 5) == 10


def test_one_text_is_one_pattern_or_several() -> None:
    assert rule(match={"tenant": "a, b*"}).match.tenant == ("a", "b*")
    assert rule(match={"tenant": ["a,b"]}).match.tenant == ("a,b",)
    assert rule(match={"tenant": "007"}).match.tenant == ("007",)
    assert rule(per="tenant, topic").per == ("tenant", "topic")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"match": {"tenant": 7}}, id="a number as a pattern"),
        pytest.param({"match": {"tenant": []}}, id="no patterns"),
        pytest.param({"match": {"network": []}}, id="no networks"),
        pytest.param({"match": {"network": "10.0.0.1/8"}}, id="bits beyond a mask"),
        pytest.param({"match": {"color": "red"}}, id="a key that is not known"),
        pytest.param({"per": []}, id="no keys"),
        pytest.param({"per": "color"}, id="a key that nobody has"),
        pytest.param({"per": "subscription"}, id="a lookup by subscription"),
        pytest.param({"mode": "dry-run"}, id="a mode that is not known"),
        pytest.param({"limit": {}}, id="no limit"),
    ],
)
def test_a_meaningless_value_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule(**parts)


@pytest.mark.parametrize("field", ["tenant", "namespace", "topic", "subscription"])
@pytest.mark.parametrize("key", ["match", "per"])
def test_a_connection_is_not_limited_by_what_is_not_known_yet(key: str, field: str) -> None:
    part = field if key == "per" else {field: "a"}
    with pytest.raises(ValidationError, match=f"cannot limit connects by {field}"):
        rule({"connects": "1/s"}, **{key: part})


def right(**parts: Any) -> Rule:
    return Rule.model_validate({"id": "a"} | parts)


def test_a_rule_of_rights_limits_nothing() -> None:
    found = right(allow="produce, consume", mode="shadow", match={"topic": "orders"})
    assert found.rights == found.allow == (Right.PRODUCE, Right.CONSUME)
    assert found.deny == ()
    assert list(found.limits) == []
    assert right(deny=["lookup"]).rights == (Right.LOOKUP,)
    assert rule().rights == ()


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, "has none of limit, allow and deny"),
        ({"limit": None}, "has none of limit, allow and deny"),
        ({"allow": "produce", "deny": "consume"}, "has allow and deny of limit"),
        ({"limit": {"lookups": "1/s"}, "deny": "consume"}, "has limit and deny of limit"),
        ({"allow": "produce", "per": "topic"}, "has per, which is for limits alone"),
        ({"deny": "produce", "burst": "1s"}, "has burst, which is for limits alone"),
        ({"deny": "produce", "override": True}, "has override, which is for limits alone"),
        ({"deny": "produce", "partitions": "each"}, "has partitions, which is for limits"),
        ({"deny": "produce", "action": "reject"}, "has action, which is for limits alone"),
        ({"deny": "produce", "on_overflow": "reset"}, "has on_overflow, which is for limits"),
        ({"deny": "produce", "on_store_failure": "open"}, "has on_store_failure, which is for"),
        ({"deny": "lookup", "match": {"subscription": "s"}}, "is about lookup by subscription"),
        (
            {"allow": ["consume", "administer"], "match": {"subscription": "s"}},
            "is about administer by subscription, which only consumers have",
        ),
        ({"allow": []}, "is empty"),
        ({"deny": ""}, "deny"),
        ({"allow": "connect"}, "allow"),
        ({"allow": 7}, "allow"),
    ],
)
def test_a_mistake_about_rights_is_told(parts: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        right(**parts)


@pytest.mark.parametrize("topic", ["orders-partition-3", "orders-partition-*", "*-partition-*"])
def test_a_right_on_a_partition_is_refused_since_no_topic_would_match(topic: str) -> None:
    """A denial that never applies would be a hole."""
    with pytest.raises(ValidationError, match="rights are those of the whole topic"):
        right(deny="produce", match={"topic": topic})
    with pytest.raises(ValidationError, match="names a partition"):
        rule(match={"topic": topic})
    assert rule(match={"topic": topic}, partitions="each").match.topic == (topic,)
    assert right(deny="produce", match={"topic": "orders-*"}).match.topic == ("orders-*",)


@pytest.mark.parametrize("topic", ["web/orders", "/orders", "orders/", "PERSISTENT://a/b/c"])
def test_a_right_on_a_name_that_no_client_may_use_is_refused(topic: str) -> None:
    with pytest.raises(ValidationError, match="as no client may name one"):
        right(deny="produce", match={"topic": ["orders", topic]})
    assert rule(match={"topic": topic}).match.topic == (topic,)


@pytest.mark.parametrize(
    "topic",
    ["orders", "acme/web/orders", "persistent://acme/web/orders", "topic://a/b/c", "web/*", "*"],
)
def test_a_right_on_a_name_or_a_pattern_is_taken(topic: str) -> None:
    assert right(deny="produce", match={"topic": topic}).match.topic == (topic,)


def test_a_partition_may_be_named_only_where_each_is_a_topic() -> None:
    match = {"topic": "orders-partition-3"}
    assert rule(match=match, partitions="each").match.topic == ("orders-partition-3",)
    with pytest.raises(ValidationError, match="names a partition"):
        rule(match=match)
