"""A gateway in front of two clusters of Kafka: to clients, each listener is a cluster."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.gateways import IDS, KafkaPlan
from tests.real.brokers.ports import free_range
from tests.real.fixtures import StartGateway
from tests.real.gateways import CLUSTER, HOST, Settings, Upstream
from tests.real.metrics import totals

BROKERS = 2
TOPIC = "events"
SENT = {"clients": 3, "others": 5}
"""Messages by the listener through which they are sent."""

PATIENCE_S = 30


class Cluster(NamedTuple):
    """Brokers in memory; see `Upstream`."""

    service_url: str
    traces: tuple[str, ...]


@contextmanager
def sandbox() -> Iterator[Cluster]:
    """Yield a cluster."""
    ports = ",".join([f"{HOST}:0"] * BROKERS)
    command = [sys.executable, "-m", "gateway", "sandbox", "--protocol", "kafka"]
    with subprocess.Popen(
        [*command, "--brokers", ports], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        yield Cluster(url, tuple(url.removeprefix("kafka://").split(",")))
        process.terminate()


@dataclass(frozen=True)
class TwoClusters(KafkaPlan):
    """A plan with a listener in front of another cluster, whose brokers have the same ids."""

    other: Upstream | None = None
    other_port: int = field(default_factory=lambda: free_range(IDS + 1))

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        found = super().settings(broker, port, admin_port)
        assert self.other is not None
        second = super().settings(self.other, self.other_port, admin_port)
        (listener,), (cluster,) = second["listeners"], second["clusters"].values()
        listener["advertise"]["ports"]["first_port"] = self.other_port + 1
        found["listeners"].append(listener | {"name": "others", "cluster": "others"})
        found["clusters"]["others"] = cluster
        return found


@pytest.fixture
def clusters() -> Iterator[list[Cluster]]:
    with ExitStack() as stack:
        yield [stack.enter_context(sandbox()) for _ in range(2)]


def test_each_listener_is_a_cluster_of_its_own(
    clusters: list[Cluster], gateway: StartGateway
) -> None:
    """The same topic, the same ids of brokers: nothing of one is seen or counted in the other."""
    plan = TwoClusters(other=clusters[1])
    started = gateway(clusters[0], plan)
    ports = {"clients": started.port, "others": plan.other_port}
    told = {name: told_by(f"{HOST}:{port}") for name, port in ports.items()}
    assert {len(it) for it in told.values()} == {BROKERS}
    assert not told["clients"] & told["others"]
    assert not (told["clients"] | told["others"]) & {*clusters[0].traces, *clusters[1].traces}
    for name, port in ports.items():
        send(f"{HOST}:{port}", [f"{name} {number}" for number in range(SENT[name])])
    for name, port in ports.items():
        received = receive(f"{HOST}:{port}", SENT[name])
        assert sorted(received) == [f"{name} {number}" for number in range(SENT[name])]
    text = started.ask("metrics")[1]
    counted = totals(text, "gateway_tenant_messages_total", "cluster", "direction")
    assert counted[CLUSTER, "to_broker"] == SENT["clients"]
    assert counted["others", "to_broker"] == SENT["others"]


def told_by(address: str) -> set[str]:
    """Create the topic, and return where the brokers of a cluster are."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, BROKERS, 1)])[TOPIC].result(PATIENCE_S)
    brokers = admin.list_topics(timeout=PATIENCE_S).brokers
    return {f"{it.host}:{it.port}" for it in brokers.values()}


def send(address: str, values: list[str]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(PATIENCE_S) == 0


def receive(address: str, count: int) -> list[str]:
    """Return what is stored, and wait for nothing more than `count` messages."""
    where = {"bootstrap.servers": address, "group.id": uuid.uuid4().hex}
    consumer = confluent_kafka.Consumer(where | {"auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    found = [*consumer.consume(count, PATIENCE_S), *consumer.consume(1, 1)]
    consumer.close()
    return [(it.value() or b"").decode() for it in found]
