"""Consumers get exactly what producers send, however it is packed."""

import time
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.brokers.tokens import KeyPair
from tests.real.clients import (
    Client,
    assert_silent,
    fresh_topic,
    numbered,
    payloads,
    receive,
    send_all,
)
from tests.real.fixtures import Connect, Route

CODECS = ("LZ4", "ZLib", "ZSTD", "SNAPPY")


def test_messages_arrive_in_order(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbered(20):
        producer.send(payload)
    assert payloads(receive(consumer, 20)) == numbered(20)


def test_all_fields_of_a_message_survive(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, producer_name="origin-" + topic[-6:])
    before_ms = int(time.time() * 1000)
    sent_as = producer.send(
        b"content",
        properties={"colour": "blue", "": "empty name"},
        partition_key="k",
        ordering_key="o",
        event_timestamp=42,
    )
    (message,) = receive(consumer, 1)
    assert message.properties() == {"colour": "blue", "": "empty name"}
    assert (message.partition_key(), message.ordering_key(), message.event_timestamp()) == (
        "k",
        "o",
        42,
    )
    assert message.producer_name() == producer.producer_name()
    assert message.topic_name() == topic
    assert (message.message_id().ledger_id(), message.message_id().entry_id()) == (
        sent_as.ledger_id(),
        sent_as.entry_id(),
    )
    assert abs(message.publish_timestamp() - before_ms) < 60_000


def test_a_message_may_be_empty(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"")
    assert payloads(receive(consumer, 1)) == [b""]


def test_batches_arrive_whole_and_in_order(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=100,
        batching_max_publish_delay_ms=20,
        block_if_queue_full=True,
    )
    send_all(producer, numbered(2000))
    received = receive(consumer, 2000)
    assert payloads(received) == numbered(2000)
    assert max(message.message_id().batch_index() for message in received) > 0, (
        "nothing was batched"
    )


def test_batches_by_key_arrive_whole(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_type=client_library.BatchingType.KeyBased,
        batching_max_publish_delay_ms=50,
    )
    for number, payload in enumerate(numbered(300)):
        producer.send_async(payload, None, partition_key=f"k{number % 3}")
    producer.flush()
    received = receive(consumer, 300)
    by_key = {
        key: [m.data() for m in received if m.partition_key() == key] for key in ("k0", "k1", "k2")
    }
    assert by_key == {f"k{rest}": numbered(300)[rest::3] for rest in range(3)}


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize("codec", CODECS)
def test_compressed_messages_arrive(client: Client, codec: str, batched: bool) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    compression = getattr(client_library.CompressionType, codec)
    producer = client.create_producer(topic, compression_type=compression, batching_enabled=batched)
    content = [payload * 500 for payload in numbered(50)]
    send_all(producer, content)
    assert payloads(receive(consumer, 50)) == content


@pytest.fixture
def crypto(tmp_path: Path) -> Any:
    """Return a key pair for encrypting and decrypting messages."""
    keys = KeyPair()
    public = keys.write_public(tmp_path / "public.pem")
    private = keys.write_private(tmp_path / "private.pem")
    return client_library.CryptoKeyReader(str(public), str(private))


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize("codec", ["NONE", "LZ4"])
def test_encrypted_messages_arrive(client: Client, crypto: Any, codec: str, batched: bool) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", crypto_key_reader=crypto)
    producer = client.create_producer(
        topic,
        encryption_key="k",
        crypto_key_reader=crypto,
        compression_type=getattr(client_library.CompressionType, codec),
        batching_enabled=batched,
    )
    send_all(producer, numbered(5))
    assert payloads(receive(consumer, 5)) == numbered(5)


def test_an_encrypted_message_in_chunks_arrives_whole(client: Client, crypto: Any) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", crypto_key_reader=crypto)
    producer = client.create_producer(
        topic, chunking_enabled=True, encryption_key="k", crypto_key_reader=crypto
    )
    content = bytes(range(256)) * 4096 * 6  # 6 MiB, above the broker's 5
    producer.send(content)
    assert payloads(receive(consumer, 1)) == [content]


def test_a_message_in_chunks_arrives_whole(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, chunking_enabled=True)
    content = bytes(range(256)) * 4096 * 12  # 12 MiB, above the broker's 5
    producer.send(content)
    producer.send(b"after it")
    assert payloads(receive(consumer, 2)) == [content, b"after it"]


def test_a_message_above_the_broker_s_limit_is_refused_to_its_sender(
    client: Client, route: Route
) -> None:
    producer = client.create_producer(fresh_topic())
    with pytest.raises(client_library.MessageTooBig):
        producer.send(bytes(route.broker.max_message_size + 1))
    producer.send(b"and the next one passes")


def test_messages_of_all_sizes_keep_their_boundaries(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, block_if_queue_full=True)
    content = [
        bytes([size % 251]) * size
        for power in range(21)
        for size in (2**power - 1, 2**power, 2**power + 1)
    ]
    send_all(producer, content)
    assert payloads(receive(consumer, len(content))) == content


def test_many_producers_and_consumers_share_one_connection(route: Route, connect: Connect) -> None:
    client = connect(route.url, route.token)
    topics = [fresh_topic() for _ in range(20)]
    consumers = [client.subscribe(topic, "s") for topic in topics]
    producers = [client.create_producer(topic) for topic in topics]
    for number in range(10):
        for which, producer in enumerate(producers):
            producer.send_async(b"%d of %d" % (number, which), None)
    for which, consumer in enumerate(consumers):
        assert payloads(receive(consumer, 10)) == [
            b"%d of %d" % (number, which) for number in range(10)
        ]


def test_many_concurrent_clients_are_kept_apart(route: Route, connect: Connect) -> None:
    clients = [connect(route.url, route.token) for _ in range(10)]
    topics = [fresh_topic() for _ in clients]
    consumers = [
        client.subscribe(topic, "s") for client, topic in zip(clients, topics, strict=True)
    ]
    for client, topic in zip(clients, topics, strict=True):
        client.create_producer(topic).send(topic.encode())
    assert [payloads(receive(consumer, 1)) for consumer in consumers] == [
        [topic.encode()] for topic in topics
    ]


def test_a_producer_continues_the_sequence_of_its_name(client: Client) -> None:
    topic, name = fresh_topic(), "counted-" + fresh_topic()[-6:]
    producer = client.create_producer(topic, producer_name=name, initial_sequence_id=100)
    producer.send(b"x")
    assert producer.last_sequence_id() == 101
    producer.close()
    assert client.create_producer(topic, producer_name=name).producer_name() == name


def test_nothing_is_delivered_twice(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(10))
    assert payloads(receive(consumer, 10)) == numbered(10)
    assert_silent(consumer)
