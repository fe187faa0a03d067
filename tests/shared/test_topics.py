"""Several topics as one: lists, patterns, partitions."""

import re

import pytest

from tests.real.clients import (
    Client,
    fresh_topic,
    numbered,
    payloads,
    receive,
    receive_until_silent,
    send_all,
)

from .brokers import Brokers

# Topics that are created later are not tested: the client ignores its option for the period
# (pulsar-client-python issue 171) and looks once a minute, by the same command as at the start.


def test_a_list_of_topics_is_one_subscription(client: Client) -> None:
    topics = [fresh_topic() for _ in range(3)]
    consumer = client.subscribe(topics, "s")
    for topic in topics:
        client.create_producer(topic).send(topic.encode())
    assert {message.topic_name(): message.data() for message in receive(consumer, 3)} == {
        t: t.encode() for t in topics
    }


def test_a_pattern_finds_existing_topics(client: Client) -> None:
    prefix = fresh_topic("pattern")
    producers = {name: client.create_producer(f"{prefix}-{name}") for name in ("a", "b", "other")}
    consumer = client.subscribe(re.compile(f"{prefix}-[ab]"), "s")
    for name, producer in producers.items():
        producer.send(name.encode())
    assert sorted(payloads(receive(consumer, 2))) == [b"a", b"b"]
    assert receive_until_silent(consumer, 1000) == []


@pytest.fixture
def partitioned(brokers: Brokers) -> str:
    topic = fresh_topic("p")
    brokers.create_partitioned(topic, 4)
    return topic


def test_partitions_can_be_queried(client: Client, partitioned: str) -> None:
    assert sorted(client.get_topic_partitions(partitioned)) == [
        f"{partitioned}-partition-{i}" for i in range(4)
    ]


def test_all_partitions_are_written_and_read(client: Client, partitioned: str) -> None:
    consumer = client.subscribe(partitioned, "s")
    send_all(client.create_producer(partitioned), numbered(100))
    received = receive(consumer, 100)
    assert sorted(payloads(received)) == sorted(numbered(100))
    assert {message.message_id().partition() for message in received} == {0, 1, 2, 3}


def test_a_key_stays_on_its_partition(client: Client, partitioned: str) -> None:
    consumer = client.subscribe(partitioned, "s")
    producer = client.create_producer(partitioned)
    for number in range(100):
        producer.send_async(b"%d" % number, None, partition_key=f"k{number % 10}")
    producer.flush()
    places = {
        (message.partition_key(), message.message_id().partition())
        for message in receive(consumer, 100)
    }
    assert len(places) == 10


def test_one_partition_is_a_topic_too(client: Client, partitioned: str) -> None:
    consumer = client.subscribe(f"{partitioned}-partition-2", "s")
    client.create_producer(f"{partitioned}-partition-2").send(b"here")
    assert payloads(receive(consumer, 1)) == [b"here"]


def test_a_pattern_covers_partitioned_topics(client: Client, partitioned: str) -> None:
    consumer = client.subscribe(re.compile(partitioned), "s")
    send_all(client.create_producer(partitioned), numbered(20))
    assert sorted(payloads(receive(consumer, 20))) == sorted(numbered(20))
