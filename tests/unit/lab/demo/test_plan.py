"""The load of the demonstration's clients."""

from __future__ import annotations

import pytest

from gateway.lab.demo.plan import (
    FLOWS,
    KAFKA_FLOWS,
    MOVABLE,
    Flow,
    namespaces,
    short_name,
    tenant_and_rest,
    tenants,
)


def test_a_steady_flow_is_due_at_its_rate() -> None:
    flow = Flow("persistent://a/b/c", rate=150, size=1)
    assert [flow.due(seconds) for seconds in (0.0, 0.1, 1.0, 60.0)] == [0, 15, 150, 9000]


def test_a_bursting_flow_is_busy_at_the_start_of_every_cycle() -> None:
    flow = Flow("persistent://a/b/c", rate=100, size=1, busy=2, cycle=5)
    owed = [flow.due(seconds) for seconds in (1.0, 2.0, 4.9, 6.0, 7.0, 10.0, 10.5)]
    assert owed == [100, 200, 200, 300, 400, 400, 450]


@pytest.mark.parametrize("flow", FLOWS + KAFKA_FLOWS, ids=lambda flow: short_name(flow.topic))
def test_due_messages_never_decrease(flow: Flow) -> None:
    owed = [flow.due(tick / 50) for tick in range(1000)]
    assert owed == sorted(owed)
    assert owed[50] > 0, "a short demo has messages on every topic"


def test_clients_are_counted_per_partition() -> None:
    unpartitioned, parted = (
        Flow("a", 1, 1, consumers=2),
        Flow("a", 1, 1, consumers=2, partitions=3),
    )
    assert (unpartitioned.producers, unpartitioned.subscribers) == (1, 2)
    assert (parted.producers, parted.subscribers) == (3, 6)


def test_the_demo_has_three_tenants_a_partitioned_topic_and_a_shared_subscription() -> None:
    assert tenants() == ["shop", "metering", "noisy"]
    assert set(tenants()) == {name.partition("/")[0] for name in namespaces()}
    assert any(flow.partitions for flow in FLOWS)
    (shared,) = [flow for flow in FLOWS if flow.topic == MOVABLE]
    assert shared.consumers > 1


def test_one_tenant_is_noisy() -> None:
    volume = dict.fromkeys(tenants(), 0.0)
    for flow in FLOWS:
        volume[short_name(flow.topic).partition("/")[0]] += flow.due(70) * flow.size
    assert volume["noisy"] > 10 * (volume["shop"] + volume["metering"])


def test_of_kafka_s_topics_one_would_send_more_than_its_rule_lets_it() -> None:
    (limited,) = [flow for flow in KAFKA_FLOWS if flow.limit]
    assert limited.due(1) > limited.limit
    assert len(KAFKA_FLOWS) > 1


@pytest.mark.parametrize("flow", KAFKA_FLOWS, ids=lambda flow: flow.topic)
def test_each_member_of_a_group_gets_a_partition(flow: Flow) -> None:
    assert flow.consumers <= (flow.partitions or 1)


def test_a_topic_of_kafka_has_the_tenant_that_rules_and_metrics_call_kafka() -> None:
    assert tenant_and_rest("persistent://shop/orders/placed") == ("shop", "orders/placed")
    assert tenant_and_rest("orders") == ("kafka", "orders")
