"""Topics that are not for clients."""

from __future__ import annotations

import pytest

from gateway.wire.pulsar.topics import is_brokers_own


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
