"""Real clients and a real broker, with a gateway between them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
import yaml
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from gateway.usage import reading
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.working import (
    PATIENCE_S,
    aio,
    idempotent,
    kafka_python,
    librdkafka,
    librdkafka_compressed,
    payloads,
)
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import HOST, Gateway
from tests.real.metrics import scrape, total, totals

pytestmark = pytest.mark.real

DENIED = 29
PARTITIONS = 3
"""Of each topic."""
LIMIT = 400
"""Messages a second of a limited topic."""


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    made = or_skip(lambda say: Kafka(artifacts.directory("kafka"), say), say)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def rules(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes rules to a file."""

    def write(*listed: Mapping[str, Any]) -> Path:
        path = tmp_path / "rules.yaml"
        path.write_text(yaml.safe_dump({"version": 1, "rules": list(listed)}))
        return path

    return write


def address(gateway: Gateway) -> str:
    return f"{HOST}:{gateway.port}"


def create(gateway: Gateway, *topics: str) -> None:
    """Create topics, and wait until the broker leads them: it answers sends with an error before,
    and clients send again, which is counted again."""
    admin = AdminClient({"bootstrap.servers": address(gateway)})
    for made in admin.create_topics([NewTopic(it, PARTITIONS, 1) for it in topics]).values():
        made.result(PATIENCE_S)
    end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = {TopicPartition(it, n): end for it in topics for n in range(PARTITIONS)}

    def are_led() -> bool:
        try:
            return all(it.result(PATIENCE_S) for it in admin.list_offsets(ends).values())
        except KafkaException:
            return False

    wait_until(are_led)


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("work", [librdkafka, librdkafka_compressed, idempotent, aio, kafka_python])
def test_clients_send_and_receive(
    broker: Kafka, gateway: StartGateway, work: Callable[..., list[bytes]]
) -> None:
    started = gateway(broker, KafkaPlan())
    topic = f"t-{uuid.uuid4().hex[:8]}"
    create(started, topic)
    assert sorted(work(address(started), topic)) == sorted(payloads())
    counted = started.ask("metrics/topics")[1]
    labels = f'topic="{topic}",direction="to_client"'
    assert f"{labels}}} {len(payloads())}" in counted
    found = scrape(started.metrics_url)
    for timed in ("send", "send_own", "lookup"):
        assert total(found, f"gateway_{timed}_seconds_count") > 0


def test_the_lag_of_a_group_is_what_it_has_not_committed(
    broker: Kafka, gateway: StartGateway
) -> None:
    started = gateway(broker, KafkaPlan())
    topic, group = (f"{it}-{uuid.uuid4().hex[:8]}" for it in ("t", "g"))
    create(started, topic)
    where = {"bootstrap.servers": address(started)}
    producer = confluent_kafka.Producer(where)

    def send(count: int) -> None:
        for number in range(count):
            producer.produce(topic, b"%d" % number)
            assert producer.flush(PATIENCE_S) == 0  # so that each is a batch

    send(20)
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(where | settings)
    consumer.subscribe([topic])
    read = 0
    while read < 8:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        consumer.commit(message=message, asynchronous=False)
        read += 1
    consumer.close()
    assert _lag(started, group, topic) == 20 - read
    send(5)  # while nobody consumes
    assert _lag(started, group, topic) == 25 - read
    admin = AdminClient({**where})
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert f'group="{group}"' not in started.ask("metrics/topics")[1]


def test_usage_records_name_clients_as_they_do_themselves(
    broker: Kafka, gateway: StartGateway, tmp_path: Path
) -> None:
    usage = {"folder": str(tmp_path), "interval": "1s", "client_ids": True}
    started = gateway(broker, KafkaPlan(more={"usage": usage}))
    topic = f"t-{uuid.uuid4().hex[:8]}"
    create(started, topic)
    assert librdkafka(address(started), topic, {"client.id": "billing"})
    started.stop()
    found = [it for it in reading.usage(tmp_path) if it.topic == topic]
    sums = {op: sum(it.msgs for it in found if it.op == op) for op in ("send", "deliver")}
    assert sums == dict.fromkeys(("send", "deliver"), len(payloads()))
    assert {(it.proto, it.client_id) for it in found} == {("kafka", "billing")}
    assert "billing" in {it.client_id for it in reading.events(tmp_path)}


def _lag(gateway: Gateway, group: str, topic: str) -> float:
    """Return how many messages a group has not committed, as a rule of Prometheus adds them up."""
    found = gateway.ask("metrics/topics")[1]
    ends = totals(found, "gateway_partition_end_offset", "topic", "partition")
    offsets = totals(found, "gateway_group_offset", "group", "topic", "partition")
    partitions = {it for name, it in ends if name == topic}
    return sum(ends[topic, it] - offsets.get((group, topic, it), 0) for it in partitions)


def test_a_client_without_a_right_gets_the_protocols_errors_and_sees_no_topic(
    broker: Kafka, gateway: StartGateway, rules: Callable[..., Path]
) -> None:
    allowed, denied = (f"{it}-{uuid.uuid4().hex[:8]}" for it in ("allowed", "denied"))
    create(gateway(broker, KafkaPlan()), allowed, denied)
    allow = {"id": "a", "match": {"topic": "allowed-*"}, "allow": ["produce", "consume"]}
    groups = {"id": "g", "match": {"subscription": "good-*"}, "allow": ["consume"]}
    plan = KafkaPlan(access="closed", unknown="mask", rules=rules(allow, groups))
    started = gateway(broker, plan)
    seen = AdminClient({"bootstrap.servers": address(started)}).list_topics(timeout=PATIENCE_S)
    assert allowed in seen.topics
    assert denied not in seen.topics
    outcomes: dict[str, set[int]] = {allowed: set(), denied: set()}

    def done(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        outcomes[message.topic() or ""].add(error.code() if error else 0)

    producer = confluent_kafka.Producer({"bootstrap.servers": address(started)})
    for payload in payloads():
        for topic in outcomes:
            producer.produce(topic, payload, on_delivery=done)
    assert producer.flush(PATIENCE_S) == 0
    assert outcomes == {allowed: {0}, denied: {DENIED}}
    for group, expected in (("good-one", 0), ("bad-one", 30)):
        assert _consume(started, group, allowed) == expected


def _consume(gateway: Gateway, group: str, topic: str) -> int:
    """Return the error of a consumer; 0 if it receives a message."""
    settings = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address(gateway), **settings})
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    consumer.close()
    assert message is not None
    error = message.error()
    return 0 if error is None else error.code()


def test_a_limit_binds_clients_that_do_not_wait(
    broker: Kafka, gateway: StartGateway, rules: Callable[..., Path]
) -> None:
    """librdkafka ignores what answers say about throttling, and is not read meanwhile."""
    limit = {"id": "slow", "match": {"topic": "slow-*"}, "burst": "100ms"}
    limit["limit"] = {"publish": {"messages": f"{LIMIT}/s"}}
    started = gateway(broker, KafkaPlan(rules=rules(limit)))
    topic = f"slow-{uuid.uuid4().hex[:8]}"
    create(started, topic)
    settings = {"bootstrap.servers": address(started), "batch.num.messages": 20, "linger.ms": 5}
    producer = confluent_kafka.Producer(settings)
    began = time.monotonic()
    for number in range(5 * LIMIT):
        producer.produce(topic, b"%d" % number)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    least = 5 - 1  # a burst, a lease, and what was sent last pass earlier
    assert time.monotonic() - began >= least
