"""What the names of topics say: which are not for clients, and what they are in."""

from __future__ import annotations

import pytest

from gateway.wire.pulsar.topics import is_brokers_own, named
from gateway.wire.subject import TopicName


@pytest.mark.parametrize(
    "topic",
    [
        "persistent://pulsar/system/load-balancer-service-unit-state",
        "non-persistent://pulsar/system/loadbalancer-broker-load-data",
        "persistent://pulsar/127.0.0.1:8080/healthcheck",
        "persistent://pulsar/standalone/127.0.0.1:8080/healthcheck",
        "pulsar/system/x",
        "persistent://pulsar/system/__change_events-partition-0",
    ],
)
def test_tenant_pulsar_is_the_brokers_own(topic: str) -> None:
    assert is_brokers_own(topic)


@pytest.mark.parametrize(
    "topic",
    [
        "persistent://public/default/pulsar",
        "pulsar",
        "pulsars/a/b",
        "persistent://pulsars/a/b",
        "persistent://public/pulsar/x",
        "Pulsar/system/x",
        "persistent://pulsar/system/transaction_coordinator_assign-partition-3",
        "",
    ],
)
def test_all_others_are_for_clients(topic: str) -> None:
    assert not is_brokers_own(topic)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (
            "orders",
            TopicName("public", "public/default", "persistent://public/default/orders", None),
        ),
        ("acme/web/orders", TopicName("acme", "acme/web", "persistent://acme/web/orders", None)),
        (
            "non-persistent://acme/web/orders",
            TopicName("acme", "acme/web", "non-persistent://acme/web/orders", None),
        ),
        (
            "persistent://acme/web/orders-partition-12",
            TopicName(
                *("acme", "acme/web", "persistent://acme/web/orders"),
                "persistent://acme/web/orders-partition-12",
            ),
        ),
        (
            "persistent://acme/web/orders-partition-012",
            TopicName("acme", "acme/web", "persistent://acme/web/orders-partition-012", None),
        ),
        (
            "persistent://acme/east/web/a/b",
            TopicName("acme", "acme/east/web", "persistent://acme/east/web/a/b", None),
        ),
    ],
)
def test_a_name_tells_what_the_topic_is_in(topic: str, expected: TopicName) -> None:
    assert named(topic) == expected


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "acme/web",
        "persistent://orders",
        "a//b",
        "a/b/c/d",
        "persistent://",
        "persistent://t/n/",
        "://",
    ],
)
def test_what_is_no_name_is_none(topic: str) -> None:
    assert named(topic) is None


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (
            "topic://acme/web/orders/eu",
            TopicName("acme", "acme/web", "topic://acme/web/orders/eu", None),
        ),
        (
            "segment://acme/web/orders/0000-7fff-1",
            TopicName(
                *("acme", "acme/web", "topic://acme/web/orders"),
                "segment://acme/web/orders/0000-7fff-1",
            ),
        ),
    ],
)
def test_scalable_topics_are_in_their_namespace(topic: str, expected: TopicName) -> None:
    assert named(topic) == expected


@pytest.mark.parametrize("coordinator", ["", "-partition-0", "-partition-15"])
def test_transaction_coordinators_are_found_by_name(coordinator: str) -> None:
    name = f"persistent://pulsar/system/transaction_coordinator_assign{coordinator}"
    assert not is_brokers_own(name)
    assert is_brokers_own(name.replace("assign", "assigned"))
