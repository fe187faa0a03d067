"""Three real brokers: what happens to them, or to the gateway, loses and doubles nothing."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import Cluster
from tests.apache_kafka.gateways import TAP, KafkaPlan, Tap
from tests.apache_kafka.working import PATIENCE_S
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import Gateway

pytestmark = pytest.mark.real

NODES = 3
RATE = 500
"""Messages a second: enough for each request to have several."""

Happening = Callable[[Gateway, Cluster], None]


@pytest.fixture(scope="module")
def cluster(artifacts: Artifacts, say: Say) -> Iterator[Cluster]:
    folders = [artifacts.directory(f"kafka-{number}") for number in range(NODES)]
    made = or_skip(lambda say: Cluster(folders, say), say)
    made.start()
    yield made
    made.stop()


class Traffic:
    """Numbered messages to all partitions of a topic, and what a group gets of them."""

    def __init__(self, address: str, topic: str) -> None:
        self._where = {"bootstrap.servers": address}
        self._topic = topic
        self._ends = threading.Event()
        self.sent = 0
        self.failed: list[str] = []
        self.received: Counter[bytes] = Counter()
        self._threads = [threading.Thread(target=it) for it in (self._send, self._receive)]
        for it in self._threads:
            it.start()

    def _send(self) -> None:
        producer = confluent_kafka.Producer(self._where | {"enable.idempotence": True})

        def done(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
            if error is not None:
                self.failed.append(str(error))

        while not self._ends.is_set():
            producer.produce(self._topic, b"%d" % self.sent, on_delivery=done)
            self.sent += 1
            producer.poll(1 / RATE)
        if producer.flush(2 * PATIENCE_S):
            self.failed.append("messages were not delivered")

    def _receive(self) -> None:
        group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(self._where | group)
        consumer.subscribe([self._topic])
        until = float("inf")
        while time.monotonic() < until:
            for it in consumer.consume(1000, 0.2):
                if not it.error():
                    self.received[it.value() or b""] += 1
            if not self._threads[0].is_alive():
                until = min(until, time.monotonic() + PATIENCE_S)
                if len(self.received) >= self.sent:
                    break
        consumer.close()

    def end(self) -> None:
        """Send no more, and return when all is received."""
        self._ends.set()
        for it in self._threads:
            it.join()


def rest(_gateway: Gateway, _cluster: Cluster) -> None:
    """Nothing happens."""


def broker_killed(_gateway: Gateway, cluster: Cluster) -> None:
    """One of the leaders is killed, and comes back."""
    cluster.nodes[1].stop()
    time.sleep(3)
    cluster.nodes[1].start()


def gateway_restarted(gateway: Gateway, _cluster: Cluster) -> None:
    """The gateway stops in good order, and starts again."""
    gateway.stop()
    gateway.start()


def gateway_killed(gateway: Gateway, _cluster: Cluster) -> None:
    """The gateway is killed, and starts again."""
    gateway.kill()
    gateway.start()


@pytest.mark.parametrize("happening", [rest, broker_killed, gateway_restarted, gateway_killed])
def test_nothing_is_lost_or_doubled_and_no_broker_is_seen(
    cluster: Cluster, gateway: StartGateway, happening: Happening
) -> None:
    plan = KafkaPlan(host=TAP)
    started = gateway(cluster, plan)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": _direct(cluster)})
    for made in admin.create_topics([NewTopic(topic, 6, NODES)]).values():
        made.result(PATIENCE_S)
    tap = Tap(started, plan)
    traffic = Traffic(f"{TAP}:{started.port}", topic)
    wait_until(lambda: len(traffic.received) > RATE)
    happening(started, cluster)
    reached = traffic.sent + 2 * RATE
    wait_until(lambda: traffic.sent > reached)
    traffic.end()
    tap.close()
    assert traffic.failed == []
    lost = traffic.sent - len(traffic.received)
    doubled = sum(count - 1 for count in traffic.received.values())
    assert (lost, doubled) == (0, 0)
    assert cluster.traces[0].encode() not in tap.told


def _direct(cluster: Cluster) -> str:
    return cluster.service_url.partition("://")[2]
