"""Consumers get exactly what producers send, however it is packed."""

import threading
import time
from datetime import timedelta
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.standalone import Standalone
from .clients import (
    Client,
    fresh_topic,
    numbered,
    payloads,
    receive,
    wait_until,
)

CODECS = ("LZ4", "ZLib", "ZSTD", "SNAPPY")


def test_topics_without_storage_work(client: Client) -> None:
    topic = fresh_topic().replace("persistent://", "non-persistent://")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbered(10):
        producer.send(payload)
    assert payloads(receive(consumer, 10)) == numbered(10)


def test_a_delayed_message_waits(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", consumer_type=client_library.ConsumerType.Shared)
    producer = client.create_producer(topic)
    sent = time.monotonic()
    producer.send(b"later", deliver_after=timedelta(seconds=2))
    producer.send(b"now")
    assert payloads(receive(consumer, 2)) == [b"now", b"later"]
    assert time.monotonic() - sent > 1


def test_a_second_exclusive_producer_is_refused(client: Client) -> None:
    topic, exclusive = fresh_topic(), client_library.ProducerAccessMode.Exclusive
    client.create_producer(topic, access_mode=exclusive)
    with pytest.raises(client_library.ProducerFenced):
        client.create_producer(topic, access_mode=exclusive)


def test_a_waiting_producer_gets_its_turn(client: Client) -> None:
    topic = fresh_topic()
    first = client.create_producer(topic, access_mode=client_library.ProducerAccessMode.Exclusive)
    waiting = client_library.ProducerAccessMode.WaitForExclusive
    opened: list[Any] = []
    thread = threading.Thread(
        target=lambda: opened.append(client.create_producer(topic, access_mode=waiting)),
        daemon=True,
    )
    thread.start()
    thread.join(0.5)
    assert opened == [], "the producer did not wait"
    first.close()
    wait_until(lambda: bool(opened))
    opened[0].send(b"mine now")


def test_a_missing_topic_is_reported_as_missing(client: Client, pulsar: Standalone) -> None:
    namespace = "public/closed-" + fresh_topic()[-6:]
    pulsar.admin.create_namespace(namespace)
    pulsar.admin.forbid_topic_creation(namespace)
    with pytest.raises(client_library.TopicNotFound):
        client.create_producer(fresh_topic(namespace=namespace))
