"""Topics, and the same work by each client library: messages are sent, and received by a group."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import aiokafka
import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from tests.real.clients import wait_until

Work = Callable[[str, str], list[bytes]]
"""Sends numbered messages to a topic, by bootstrap address, and returns what a group receives."""

COUNT = 200
PATIENCE_S = 120
"""Seconds for what a busy machine may take a minute for."""

PARTITIONS = 3
"""Of each topic, if a test does not say how many."""


def create(where: Mapping[str, Any], *topics: str, partitions: int = PARTITIONS) -> None:
    """Create topics, and wait until the broker leads them: it answers sends with an error before,
    and clients send again, which is counted again."""
    admin = AdminClient({**where})
    for made in admin.create_topics([NewTopic(it, partitions, 1) for it in topics]).values():
        made.result(PATIENCE_S)
    end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = {TopicPartition(it, n): end for it in topics for n in range(partitions)}

    def are_led() -> bool:
        try:
            return all(it.result(PATIENCE_S) for it in admin.list_offsets(ends).values())
        except KafkaException:
            return False

    wait_until(are_led)


def payloads() -> list[bytes]:
    """Return what is sent."""
    return [b"message %d" % number for number in range(COUNT)]


def librdkafka(
    address: str, topic: str, both: Mapping[str, Any] | None = None, **options: Any
) -> list[bytes]:
    """By librdkafka, as confluent-kafka brings it along. `both`: settings of producer and consumer,
    `options`: of the producer."""
    where = {"bootstrap.servers": address, **(both or {})}
    producer = confluent_kafka.Producer(where | options)
    for payload in payloads():
        producer.produce(topic, payload)
    assert producer.flush(PATIENCE_S) == 0
    return received(where, topic)


def received(where: Mapping[str, Any], topic: str, count: int = COUNT) -> list[bytes]:
    """Return the payloads that a new group receives with librdkafka, `count` at least. Fails if
    they do not come."""
    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**where, **group})
    consumer.subscribe([topic])
    found: list[bytes] = []

    def consume() -> bool:
        found.extend(it.value() or b"" for it in consumer.consume(COUNT, 0.2) if not it.error())
        return len(found) >= count

    wait_until(consume)
    consumer.close()
    return found


def librdkafka_compressed(address: str, topic: str) -> list[bytes]:
    """The same, whose batches nobody but brokers and consumers can read."""
    return librdkafka(address, topic, None, **{"compression.type": "zstd", "linger.ms": 50})


def idempotent(address: str, topic: str) -> list[bytes]:
    """The same, with sequence numbers."""
    return librdkafka(address, topic, None, **{"enable.idempotence": True})


def aio(address: str, topic: str) -> list[bytes]:
    """By aiokafka."""

    async def work() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=address) as producer:
            for payload in payloads():
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
    for payload in payloads():
        producer.send(topic, payload)
    producer.flush(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=address, group_id=uuid.uuid4().hex, auto_offset_reset="earliest"
    )
    found = [next(consumer).value for _ in range(COUNT)]
    consumer.close()
    return found
