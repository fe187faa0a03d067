"""Real clients and a real broker go on working with what the gateway puts into their frames."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import HOST, Kafka
from tests.apache_kafka.relay import TOPIC_AUTHORIZATION_FAILED, Relay
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.clients import wait_until
from tests.real.fixtures import or_skip

pytestmark = pytest.mark.real

COUNT = 200
PATIENCE_S = 30

Work = Callable[[str, str], list[bytes]]
"""Sends numbered messages to a topic, by bootstrap address, and returns what a group receives."""


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    made = or_skip(lambda say: Kafka(artifacts.directory("kafka"), say), say)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def relay(broker: Kafka) -> Iterator[Relay]:
    made = Relay((HOST, broker.port))
    yield made
    made.close()


def _payloads() -> list[bytes]:
    return [b"message %d" % number for number in range(COUNT)]


def librdkafka(address: str, topic: str, **options: object) -> list[bytes]:
    """By librdkafka, as confluent-kafka brings it along."""
    producer = confluent_kafka.Producer({"bootstrap.servers": address, **options})
    for payload in _payloads():
        producer.produce(topic, payload)
    assert producer.flush(PATIENCE_S) == 0
    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, **group})
    consumer.subscribe([topic])
    found: list[bytes] = []

    def consume() -> bool:
        found.extend(it.value() or b"" for it in consumer.consume(COUNT, 0.2) if not it.error())
        return len(found) >= COUNT

    wait_until(consume)
    consumer.close()
    return found


def librdkafka_compressed(address: str, topic: str) -> list[bytes]:
    """The same, whose batches nobody but brokers and consumers can read."""
    return librdkafka(address, topic, **{"compression.type": "zstd", "linger.ms": 50})


def idempotent(address: str, topic: str) -> list[bytes]:
    """The same, with sequence numbers."""
    return librdkafka(address, topic, **{"enable.idempotence": True})


def aio(address: str, topic: str) -> list[bytes]:
    """By aiokafka."""

    async def work() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=address) as producer:
            for payload in _payloads():
                await producer.send(topic, payload)
            await producer.flush()
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=uuid.uuid4().hex,
            auto_offset_reset="earliest",
        )
        async with consumer:
            return [(await consumer.getone()).value for _ in range(COUNT)]

    return asyncio.run(asyncio.wait_for(work(), PATIENCE_S))


def kafka_python(address: str, topic: str) -> list[bytes]:
    """By kafka-python."""
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=address)
    for payload in _payloads():
        producer.send(topic, payload)
    producer.flush(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=address, group_id=uuid.uuid4().hex, auto_offset_reset="earliest"
    )
    found = [next(consumer).value for _ in range(COUNT)]
    consumer.close()
    return found


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("work", [librdkafka, librdkafka_compressed, idempotent, aio, kafka_python])
def test_clients_send_and_receive_and_learn_no_broker(relay: Relay, work: Work) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    received = work(str(relay.address), topic)
    assert sorted(received) == sorted(_payloads())
    assert relay.torn == []
    assert HOST.encode() not in relay.told
    assert relay.messages["sent", topic] == relay.messages["received", topic] == COUNT
    print(dict(sorted(relay.asked)))


def test_a_topic_is_denied_within_a_request_whose_other_topics_pass(relay: Relay) -> None:
    """Its name alone is changed on the way to the broker, to one of the same length that no broker
    accepts; so a frame of any size can pass while it is read."""
    allowed, denied = (f"{it}-{uuid.uuid4().hex[:8]}" for it in ("allowed", "denied"))
    admin = AdminClient({"bootstrap.servers": str(relay.address)})
    for made in admin.create_topics([NewTopic(allowed, 1, 1), NewTopic(denied, 1, 1)]).values():
        made.result(PATIENCE_S)
    producer = confluent_kafka.Producer({"bootstrap.servers": str(relay.address), "linger.ms": 100})
    outcomes: dict[str, set[int]] = {allowed: set(), denied: set()}

    def done(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        outcomes[message.topic() or ""].add(error.code() if error else 0)

    relay.denied = denied.encode()
    for payload in _payloads():
        for topic in (allowed, denied):
            producer.produce(topic, payload, on_delivery=done)
    assert producer.flush(PATIENCE_S) == 0
    assert relay.torn == []
    assert outcomes == {allowed: {0}, denied: {TOPIC_AUTHORIZATION_FAILED}}
    assert relay.messages["sent", allowed] == COUNT


def test_an_administrator_learns_no_broker(relay: Relay) -> None:
    admin = AdminClient({"bootstrap.servers": str(relay.address)})
    assert admin.list_topics(timeout=PATIENCE_S).brokers
    cluster = admin.describe_cluster(request_timeout=PATIENCE_S).result()
    assert {(it.host, it.port) for it in cluster.nodes} == {relay.address.pair}
    assert relay.torn == []
    assert HOST.encode() not in relay.told
