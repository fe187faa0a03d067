"""Topics that are closed at their broker in full traffic: clients come back by themselves and
nothing is lost.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.standalone import Standalone
from .clients import (
    EARLIEST,
    Client,
    Producer,
    fresh_topic,
    numbered,
    payloads,
    receive,
    receive_all_of,
    receive_until_silent,
)

RATE = 400  # messages a second
SECONDS = 3.0
UNLOADS = 3


class Traffic:
    """Sends at a steady rate and keeps what was confirmed, in the order of sending."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.sent: list[bytes] = []
        self.results: list[Any] = []

    def run(self) -> None:
        start = time.monotonic()
        for number, payload in enumerate(numbered(int(RATE * SECONDS))):
            time.sleep(max(0.0, start + number / RATE - time.monotonic()))
            self.sent.append(payload)
            self._producer.send_async(payload, lambda result, _id: self.results.append(result))
        self._producer.flush()


@contextmanager
def disturbed(disturb: Callable[[], None]) -> Iterator[None]:
    """Does `disturb` a few times, spread over the time of the traffic, and fails if it failed."""

    def repeat() -> None:
        for _ in range(UNLOADS):
            time.sleep(SECONDS / (UNLOADS + 1))
            disturb()

    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(repeat)
        yield
        disturbing.result()


def without_repeats(received: list[bytes]) -> list[bytes]:
    """Each payload once, where it came first."""
    return list(dict.fromkeys(received))


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_nothing_is_lost_when_a_topic_is_unloaded(
    client: Client, pulsar: Standalone, batched: bool
) -> None:
    topic = fresh_topic()
    client.subscribe(topic, "s").close()
    traffic = Traffic(client.create_producer(topic, batching_enabled=batched))
    with disturbed(lambda: pulsar.admin.unload(topic)):
        traffic.run()
    assert set(traffic.results) == {client_library.Result.Ok}
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert without_repeats(payloads(receive_until_silent(consumer))) == traffic.sent


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "KeyShared"])
def test_a_consumer_comes_back_after_an_unload(
    client: Client, pulsar: Standalone, kind: str
) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", getattr(client_library.ConsumerType, kind))
    traffic = Traffic(client.create_producer(topic))
    with disturbed(lambda: pulsar.admin.unload(topic)):
        traffic.run()
    receive_all_of(consumer, traffic.sent)


def test_only_one_partition_moves(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic("p")
    pulsar.admin.create_partitioned_topic(topic, 3)
    consumer = client.subscribe(topic, "s")
    traffic = Traffic(client.create_producer(topic))
    with disturbed(lambda: pulsar.admin.unload(f"{topic}-partition-1")):
        traffic.run()
    receive_all_of(consumer, traffic.sent)


def test_a_reader_comes_back_after_an_unload(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic()
    reader = client.create_reader(topic, client_library.MessageId.earliest)
    producer = client.create_producer(topic)
    producer.send(b"before")
    assert reader.read_next(10_000).data() == b"before"
    pulsar.admin.unload(topic)
    producer.send(b"after")
    assert reader.read_next(10_000).data() == b"after"


def test_a_partitioned_topic_may_grow(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic("p")
    pulsar.admin.create_partitioned_topic(topic, 1)
    client.create_producer(topic).send(b"one")
    pulsar.admin.grow_partitions(topic, 2)
    assert len(client.get_topic_partitions(topic)) == 2
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbered(2):
        producer.send(payload)
    assert {message.message_id().partition() for message in receive(consumer, 2)} == {0, 1}
