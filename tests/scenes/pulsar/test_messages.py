"""Consumers get exactly what producers send."""

from __future__ import annotations

from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.clients.programs import Program
from tests.real.clients import Client, payloads, receive, send_all
from tests.real.fixtures import Route

COUNT = 500
METADATA = 64
"""Bytes that clients add to a message; the broker counts them."""


def test_the_python_and_the_java_client_read_what_each_other_sends(
    client: Client, java: Program, route: Route, topic: str, logs: Path
) -> None:
    """The client of C++ is that of Python."""
    consumer = client.subscribe(topic, "python")
    producer = client.create_producer(topic, batching_enabled=True, block_if_queue_full=True)
    with (
        java.consuming(route.url, topic, "java", 2 * COUNT, logs / "consumer.log") as consuming,
        java.producing(route.url, topic, COUNT, logs / "producer.log", batch=True) as producing,
    ):
        ours = [b"%d" % number for number in range(COUNT, 2 * COUNT)]
        send_all(producer, ours, partition_key="python")
        sent, received = producing.sent(), consuming.received()
    assert (sent.errors, received.errors) == ((), ())
    assert sent.acknowledged == set(range(COUNT))
    assert received.received == set(range(2 * COUNT))
    assert (received.stored_twice, received.out_of_order) == (0, 0)
    numbers = [int(it) for it in payloads(receive(consumer, 2 * COUNT))]
    theirs = [it for it in numbers if it < COUNT]
    assert theirs == list(range(COUNT))
    assert [it for it in numbers if it >= COUNT] == list(range(COUNT, 2 * COUNT))


def test_the_largest_message_that_the_broker_allows_arrives(
    client: Client, route: Route, topic: str
) -> None:
    limit = route.broker.max_message_size
    largest = (bytes(range(256)) * (limit // 256))[METADATA:]
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in (b"before", largest, b"after"):
        producer.send(payload)
    with pytest.raises(client_library.MessageTooBig):
        producer.send(bytes(limit + 1))
    assert payloads(receive(consumer, 3)) == [b"before", largest, b"after"]


def test_a_message_in_chunks_arrives_whole(client: Client, route: Route, topic: str) -> None:
    larger = bytes(range(256)) * (route.broker.max_message_size // 256 * 2 + 1)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, chunking_enabled=True)
    for payload in (larger, b"after"):
        producer.send(payload)
    assert payloads(receive(consumer, 2)) == [larger, b"after"]
