"""Limits of what consumers receive, with a real client: permits are passed on gradually, and
nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.clients import (
    EARLIEST,
    RECEIVE_MS,
    Client,
    assert_silent,
    fresh_topic,
    numbered,
    payloads,
    receive,
    send_all,
)
from tests.real.fixtures import Connect, Reach, Route
from tests.real.gateways import Plan
from tests.real.metrics import scrape, total

from .brokers import Brokers

pytestmark = [pytest.mark.gateway_only, pytest.mark.tier("all")]

RULES = """
version: 1
rules:
  - id: few
    match: {topic: "limited*"}
    limit: {dispatch: {messages: 40/s}}
    burst: 1
    per: topic
"""
RATE = 40
MANY = 3 * RATE
LEASES = 2 + 0.05 * RATE
"""Messages that may come at once: the burst, and what was requested in advance."""

KINDS = pulsar.ConsumerType


@pytest.fixture
def limited(brokers: Brokers, reach: Reach, tmp_path: Path) -> Route:
    """Return the route by a gateway that limits topics whose name begins with `limited`."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    return reach(brokers, Plan(rules=rules))


def may_come(seconds: float, consumers: int = 1, batch: int = 1) -> float:
    """Return how many messages a limit admits in this time: each consumer's first permit needs no
    allowance."""
    return RATE * (seconds + 0.1) + LEASES + consumers * batch


def stored(client: Client, count: int = MANY, **options: Any) -> str:
    """Store messages on a new topic, whose limit concerns only consumers."""
    topic = fresh_topic("limited")
    send_all(client.create_producer(topic, batching_enabled=False, **options), numbered(count))
    return topic


def timed(work: Callable[[], list[Any]]) -> tuple[list[Any], float]:
    began = time.monotonic()
    return work(), time.monotonic() - began


@pytest.mark.parametrize("queue", [1000, 10, 1, 0])
def test_messages_come_at_the_rate_whatever_the_queue_size(
    connect: Connect, limited: Route, queue: int
) -> None:
    client = connect(limited.url)
    topic = stored(client)
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, receiver_queue_size=queue)

    def take() -> list[bytes]:
        found = []
        for _ in range(MANY):
            message = consumer.receive() if queue == 0 else consumer.receive(RECEIVE_MS)
            consumer.acknowledge(message)
            found.append(message.data())
        return found

    received, seconds = timed(take)
    assert received == numbered(MANY)
    assert may_come(seconds) >= MANY


@pytest.mark.parametrize("kind", [KINDS.Shared, KINDS.KeyShared, KINDS.Failover])
def test_consumers_of_one_subscription_share_a_limit(
    connect: Connect, limited: Route, kind: Any
) -> None:
    client, topic = connect(limited.url), fresh_topic("limited")
    consumers = [client.subscribe(topic, "s", consumer_type=kind) for _ in range(3)]
    producer = client.create_producer(topic, batching_enabled=False)
    for number, payload in enumerate(numbered(MANY)):
        producer.send_async(payload, None, partition_key=str(number % 17))
    producer.flush()

    def take() -> list[bytes]:
        found: list[bytes] = []
        while len(found) < MANY:
            for consumer in consumers:
                found += available(consumer)
        return found

    received, seconds = timed(take)
    assert sorted(received) == sorted(numbered(MANY))
    assert may_come(seconds, consumers=3) >= MANY


def available(consumer: Any) -> list[bytes]:
    """Return the messages at hand, acknowledged: one per consumer at most, so that consumers take
    turns."""
    try:
        message = consumer.receive(5)
    except pulsar.Timeout:
        return []
    consumer.acknowledge(message)
    return [message.data()]


def test_batches_count_as_the_messages_in_them(connect: Connect, limited: Route) -> None:
    client, topic = connect(limited.url), fresh_topic("limited")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=20, batching_max_publish_delay_ms=50
    )
    send_all(producer, numbered(MANY))
    received, seconds = timed(lambda: payloads(receive(consumer, MANY)))
    assert received == numbered(MANY)
    assert may_come(seconds, batch=2 * 20) >= MANY


def test_a_consumer_that_reopens_goes_on(connect: Connect, limited: Route) -> None:
    client = connect(limited.url)
    topic = stored(client)
    found: list[bytes] = []
    for _ in range(4):
        consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
        found += payloads(receive(consumer, MANY // 4))
        consumer.close()
    assert found == numbered(MANY)


def test_a_seek_starts_again(connect: Connect, limited: Route) -> None:
    client = connect(limited.url)
    topic = stored(client, RATE)
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert payloads(receive(consumer, RATE)) == numbered(RATE)
    consumer.seek(pulsar.MessageId.earliest)
    assert payloads(receive(consumer, RATE)) == numbered(RATE)
    assert_silent(consumer)


def test_negatively_acknowledged_messages_come_again(connect: Connect, limited: Route) -> None:
    client = connect(limited.url)
    topic = stored(client, RATE)
    consumer = client.subscribe(
        topic,
        "s",
        initial_position=EARLIEST,
        consumer_type=KINDS.Shared,
        negative_ack_redelivery_delay_ms=100,
    )
    refused = [consumer.receive(RECEIVE_MS) for _ in range(RATE // 2)]
    for message in refused:
        consumer.negative_acknowledge(message)
    assert set(payloads(receive(consumer, RATE))) == set(numbered(RATE))
    assert_silent(consumer)


def test_other_consumers_of_the_connection_do_not_wait(connect: Connect, limited: Route) -> None:
    client = connect(limited.url)
    slow, quick = fresh_topic("limited"), fresh_topic()
    consumers = {topic: client.subscribe(topic, "s") for topic in (slow, quick)}
    for topic in consumers:
        send_all(client.create_producer(topic), numbered(500))
    assert payloads(receive(consumers[quick], 500)) == numbered(500)
    assert payloads(receive(consumers[slow], 50)) == numbered(50)
    assert limited.gateway is not None
    metrics = scrape(limited.gateway.metrics_url)
    assert total(metrics, "gateway_rule_wait_seconds_total", limit="dispatch.messages") > 0
