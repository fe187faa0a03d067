"""Three real brokers: what happens to them, or to the gateway, loses and doubles nothing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import Cluster
from tests.apache_kafka.gateways import TAP, KafkaPlan, Tap
from tests.apache_kafka.traffic import RATE, Traffic
from tests.apache_kafka.working import PATIENCE_S
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import Gateway

pytestmark = pytest.mark.real

NODES = 3
Happening = Callable[[Gateway, Cluster], None]

PARTITIONS = 6

Placed = dict[int, list[int]]
"""The one broker that has each partition."""


@pytest.fixture(scope="module")
def cluster(artifacts: Artifacts, say: Say) -> Iterator[Cluster]:
    folders = [artifacts.directory(f"kafka-{number}") for number in range(NODES)]
    made = or_skip(lambda say: Cluster(folders, say), say)
    made.start()
    yield made
    made.stop()


def rest(_gateway: Gateway, _cluster: Cluster) -> None:
    """Nothing happens."""


def broker_killed(_gateway: Gateway, cluster: Cluster) -> None:
    """One of the leaders is killed, and comes back."""
    cluster.nodes[1].stop()
    time.sleep(3)
    cluster.nodes[1].start()


def gateway_killed(gateway: Gateway, _cluster: Cluster) -> None:
    """The gateway is killed, and starts again."""
    gateway.kill()
    gateway.start()


@pytest.mark.parametrize("happening", [rest, broker_killed, gateway_killed])
def test_nothing_is_lost_or_doubled_and_no_broker_is_seen(
    cluster: Cluster, gateway: StartGateway, happening: Happening
) -> None:
    plan = KafkaPlan(host=TAP)
    started = gateway(cluster, plan)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": _direct(cluster)})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, NODES)]).values():
        made.result(PATIENCE_S)
    tap = Tap(started, plan)
    with Traffic(f"{TAP}:{started.port}", topic) as traffic:
        wait_until(lambda: len(traffic.received) > RATE)
        happening(started, cluster)
        reached = traffic.sent + 2 * RATE
        wait_until(lambda: traffic.sent > reached)
        traffic.end()
    tap.close()
    assert traffic.failed == []
    assert traffic.lost_and_doubled == (0, 0)
    assert cluster.traces[0].encode() not in tap.told


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
def test_partitions_move_and_nothing_is_lost_or_doubled(
    cluster: Cluster, gateway: StartGateway
) -> None:
    """An administrator moves all of them to the next broker twice, through the gateway."""
    plan = KafkaPlan(host=TAP)
    started = gateway(cluster, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    topic = f"t-{uuid.uuid4().hex[:8]}"
    admin = Admin(address, topic)
    admin.create(_placed(0))
    with Traffic(address, topic) as traffic:
        traffic.go_on()
        for moves in (1, 2):
            admin.move(_placed(moves))
            traffic.go_on()
        traffic.end()
    tap.close()
    admin.close()
    assert traffic.failed == []
    assert traffic.lost_and_doubled == (0, 0)
    assert cluster.traces[0].encode() not in tap.told


def _placed(moves: int) -> Placed:
    """Return where partitions are after so many moves."""
    return {it: [(it + moves) % NODES + 1] for it in range(PARTITIONS)}


class Admin:
    """Says where the partitions of a topic are, by kafka-python."""

    def __init__(self, address: str, topic: str) -> None:
        import kafka.admin  # which warns of itself

        self._kafka = kafka
        self._topic = topic
        self._client = kafka.KafkaAdminClient(bootstrap_servers=address)

    def create(self, placed: Placed) -> None:
        """Create the topic."""
        topic = self._kafka.admin.NewTopic(self._topic, replica_assignments=placed)
        self._client.create_topics([topic])

    def move(self, placed: Placed) -> None:
        """Return when each partition has moved, and is led there."""
        wanted = {self._kafka.TopicPartition(self._topic, it): to for it, to in placed.items()}
        assert set(self._client.alter_partition_reassignments(wanted).values()) == {None}
        wait_until(lambda: not self._client.list_partition_reassignments())
        wait_until(lambda: self._led() == placed)

    def _led(self) -> Placed:
        (found,) = self._client.describe_topics([self._topic])
        return {it["partition_index"]: [it["leader_id"]] for it in found["partitions"]}

    def close(self) -> None:
        self._client.close()


def _direct(cluster: Cluster) -> str:
    return cluster.service_url.partition("://")[2]
