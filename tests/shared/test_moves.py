"""Topics are closed at their broker under full load: clients reopen them by themselves and lose
nothing."""

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.clients import (
    EARLIEST,
    Client,
    fresh_topic,
    payloads,
    receive_all_of,
    receive_until_silent,
)
from tests.real.traffic import Traffic, disturbed

from .brokers import Brokers

pytestmark = pytest.mark.timing


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_nothing_is_lost_when_a_topic_is_unloaded(
    client: Client, brokers: Brokers, seconds: float, batched: bool
) -> None:
    topic = fresh_topic()
    client.subscribe(topic, "s").close()
    traffic = Traffic(client.create_producer(topic, batching_enabled=batched), seconds)
    with disturbed(lambda: brokers.unload(topic), seconds):
        traffic.run()
    assert set(traffic.results) == {client_library.Result.Ok}
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert receive_all_of(consumer, traffic.sent) == traffic.sent
    assert set(payloads(receive_until_silent(consumer))) <= set(traffic.sent)


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "KeyShared"])
def test_a_consumer_reopens_after_an_unload(
    client: Client, brokers: Brokers, seconds: float, kind: str
) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", getattr(client_library.ConsumerType, kind))
    traffic = Traffic(client.create_producer(topic), seconds)
    with disturbed(lambda: brokers.unload(topic), seconds):
        traffic.run()
    receive_all_of(consumer, traffic.sent)


def test_only_one_partition_moves(client: Client, brokers: Brokers, seconds: float) -> None:
    topic = fresh_topic("p")
    brokers.create_partitioned(topic, 3)
    consumer = client.subscribe(topic, "s")
    traffic = Traffic(client.create_producer(topic), seconds)
    with disturbed(lambda: brokers.unload(f"{topic}-partition-1"), seconds):
        traffic.run()
    receive_all_of(consumer, traffic.sent)


def test_a_reader_reopens_after_an_unload(client: Client, brokers: Brokers) -> None:
    topic = fresh_topic()
    reader = client.create_reader(topic, client_library.MessageId.earliest)
    producer = client.create_producer(topic)
    producer.send(b"before")
    assert reader.read_next(10_000).data() == b"before"
    brokers.unload(topic)
    producer.send(b"after")
    assert reader.read_next(10_000).data() == b"after"
