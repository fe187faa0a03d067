"""The parts of the demonstration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import yaml

from gateway.app import check
from gateway.lab.demo.ports import Ports
from gateway.lab.demo.stage import RULES, Upstream, configuration, leaders, owner_numbers, rules
from gateway.lab.kafka.cluster import KafkaCluster
from gateway.wire.address import Address

HOST = "127.0.0.1"
CLUSTER = KafkaCluster({1: Address(HOST, 1001), 2: Address(HOST, 1002)})
KAFKA = Upstream(f"kafka://{HOST}:1001,{HOST}:1002", cluster=CLUSTER)

URL = "pulsar://127.0.0.1:1001,127.0.0.1:1002"


@pytest.fixture
def own_log() -> Iterator[None]:
    """Undo changes of the check to the process's logging."""
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("own_log")
def test_the_gateways_configuration_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(yaml.safe_dump(configuration(Upstream(URL), Ports(1, 2, 4, 3))))
    assert check(file).startswith(f"{file}: ok")


@pytest.mark.usefixtures("own_log")
def test_the_gateways_configuration_for_kafka_is_valid_with_its_rules(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(yaml.safe_dump(configuration(KAFKA, Ports(11, 2, 4, 3))))
    (tmp_path / RULES).write_text(yaml.safe_dump(rules()))
    assert check(file).startswith(f"{file}: ok")


def test_each_broker_of_kafka_has_a_port_of_the_gateway() -> None:
    found = configuration(KAFKA, Ports(11, 2, 4, 3))
    (listener,) = found["listeners"]
    assert (listener["protocol"], listener["bind"]) == ("kafka", "127.0.0.1:11")
    assert listener["advertise"] == {"ports": {"host": HOST, "ids": "1,2", "first_port": 12}}
    assert found["clusters"]["demo"]["targets"]["ports"] == [1001, 1002]


def test_a_rule_limits_the_flows_that_have_a_limit() -> None:
    (rule,) = rules()["rules"]
    assert rule["match"] == {"protocol": "kafka", "topic": "import"}
    assert rule["limit"] == {"publish": {"messages": "200/s"}}


def test_leaders_are_broker_ids_one_per_partition() -> None:
    CLUSTER.create("orders", 3, leaders=(2, 1, 2))
    assert leaders(CLUSTER) == {"orders": "2 1 2"}


def test_the_gateway_listens_on_loopback_and_may_dial_the_brokers_ports() -> None:
    found = configuration(Upstream(URL), Ports(1, 2, 4, 3))
    assert [it["bind"] for it in found["listeners"]] == ["127.0.0.1:1"]
    assert found["admin"] == {"bind": "127.0.0.1:2"}
    assert found["clusters"]["demo"]["targets"]["ports"] == [1001, 1002]


def test_owners_are_broker_numbers_one_per_partition() -> None:
    topics = {
        "persistent://shop/orders/placed-partition-1": {"owner": "pulsar://127.0.0.1:1002"},
        "persistent://shop/orders/placed-partition-0": {"owner": "pulsar://127.0.0.1:1001"},
        "persistent://noisy/import/rows": {"owner": "pulsar://127.0.0.1:1002"},
        "persistent://public/default/odd": {"owner": "pulsar://127.0.0.1:9"},
    }
    assert owner_numbers(topics, URL) == {
        "persistent://shop/orders/placed": "1 2",
        "persistent://noisy/import/rows": "2",
        "persistent://public/default/odd": "?",
    }
