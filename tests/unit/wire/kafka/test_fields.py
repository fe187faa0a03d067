"""The table of fields is complete, by the protocol's own definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.wire.contract import Direction
from gateway.wire.kafka.fields import (
    CLUSTER,
    DEAR,
    EMPTY,
    ENTITIES,
    EXCEPTIONS,
    LISTING,
    NAMES,
    NO_TOPIC,
    RIGHTS,
    TO_BROKER,
    TO_CLIENT,
    TOPICS,
    Act,
    Rule,
    lists_of_topics,
    names_something,
    rule_of,
    rules_of,
    walked,
)
from gateway.wire.kafka.schema import Api, Field, apis
from gateway.wire.kafka.versions import is_offered

OFFERED = [it for it in apis() if is_offered(it.key)]
SIDES = [(it, direction) for it in OFFERED for direction in (TO_BROKER, TO_CLIENT)]


def _fields(it: Api, direction: int) -> tuple[Field, ...]:
    return (it.request if direction == TO_BROKER else it.response).fields


def test_each_api_has_one_right_on_topics_or_is_known_to_need_none() -> None:
    listed = Counter([*CLUSTER, *NO_TOPIC, *(key for keys in TOPICS.values() for key in keys)])
    assert listed == Counter(it.key for it in OFFERED)


def test_each_field_that_may_name_something_has_a_rule() -> None:
    """A new release that has one more fails here, until somebody has looked at it."""
    missing = [
        f"{it.name} {direction.name} {path}"
        for it, direction in SIDES
        for path, field in walked(_fields(it, direction))
        if names_something(field) and rule_of(it.key, direction, path, field) is None
    ]
    assert missing == []


TABLES: tuple[Mapping[Direction, Mapping[Any, Rule]], ...] = (EXCEPTIONS, NAMES, ENTITIES)


def test_each_rule_decides_a_field() -> None:
    rules = {(way, key) for table in TABLES for way in table for key in table[way]}
    deciding: set[tuple[Direction, Any]] = set()
    for it, way in SIDES:
        for path, field in walked(_fields(it, way)):
            two = "/".join(path.split("/")[-2:])
            keys = ((it.key, path), two, field.name, field.entity)
            deciding |= {*[(way, key) for key in keys if (way, key) in rules][:1]}
    assert rules == deciding


def test_it_is_known_what_each_list_of_topics_asks_for_that_is_empty() -> None:
    known = Counter(place for places in EMPTY.values() for place in places)
    lists = ((it.key, path) for it in OFFERED for path in lists_of_topics(it.key))
    assert known == Counter(place for place in lists if place[0] not in CLUSTER)


@pytest.mark.parametrize("it", OFFERED, ids=lambda it: it.name)
def test_a_topic_of_a_request_is_authorized_where_rights_are_on_topics(it: Api) -> None:
    acts = {rule.act for rule in rules_of(it.key, TO_BROKER).values()}
    assert (Act.TOPIC in acts) is (it.key in RIGHTS)
    assert it.key in RIGHTS or Act.EXPRESSION not in acts


def test_a_response_that_lists_topics_is_filtered() -> None:
    acts = {it.key: {rule.act for rule in rules_of(it.key, TO_CLIENT).values()} for it in OFFERED}
    filtered = {key for key, of in acts.items() if of & {Act.FILTERED, Act.MEMBERSHIP}}
    assert filtered == LISTING


def test_what_describes_a_whole_cluster_counts_as_a_lookup() -> None:
    assert {it.key for it in OFFERED} >= DEAR
