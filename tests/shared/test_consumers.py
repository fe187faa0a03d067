"""Subscriptions, readers and acknowledgements work through the gateway as without it."""

import itertools
import time
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.clients import (
    EARLIEST,
    RECEIVE_MS,
    Client,
    Consumer,
    Message,
    assert_silent,
    fresh_topic,
    numbered,
    payloads,
    read,
    receive,
    receive_until_silent,
    send_all,
    wait_until,
)

from .brokers import Brokers

ConsumerType = client_library.ConsumerType
MessageId = client_library.MessageId
ALL_CONSUMERS = (
    ConsumerType.Exclusive,
    ConsumerType.Shared,
    ConsumerType.Failover,
    ConsumerType.KeyShared,
)


@pytest.mark.parametrize("kind", ALL_CONSUMERS, ids=lambda kind: kind.name)
def test_every_kind_of_subscription_gets_everything(client: Client, kind: Any) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    send_all(client.create_producer(topic), numbered(50))
    assert sorted(payloads(receive(consumer, 50))) == sorted(numbered(50))


def test_each_subscription_gets_its_own_copy(client: Client) -> None:
    topic = fresh_topic()
    consumers = [client.subscribe(topic, name) for name in ("first", "second")]
    send_all(client.create_producer(topic), numbered(10))
    assert [payloads(receive(consumer, 10)) for consumer in consumers] == [numbered(10)] * 2


def test_a_second_exclusive_consumer_is_refused(client: Client) -> None:
    topic = fresh_topic()
    client.subscribe(topic, "s")
    with pytest.raises(client_library.ConsumerBusy):
        client.subscribe(topic, "s")


def test_consumers_of_a_shared_subscription_divide_the_messages(client: Client) -> None:
    topic = fresh_topic()
    consumers = [
        client.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=10) for _ in range(3)
    ]
    send_all(client.create_producer(topic), numbered(300))
    # One message for each consumer before any gets a second, so that none gets none.
    firsts = [receive(consumer, 1) for consumer in consumers]
    rests = shares(consumers, 300 - len(consumers))
    received = [message for share in firsts + rests for message in share]
    assert sorted(payloads(received)) == sorted(numbered(300))


def shares(consumers: list[Consumer], count: int) -> list[list[Message]]:
    """Receive until the consumers have at least `count` messages, and no more come. Return those
    of each consumer."""
    found: list[list[Message]] = [[] for _ in consumers]

    def have_come() -> bool:
        for share, consumer in zip(found, consumers, strict=True):
            share.extend(receive_until_silent(consumer))
        return sum(map(len, found)) >= count

    wait_until(have_come)
    return found


def test_a_key_stays_with_one_consumer_and_in_order(client: Client) -> None:
    topic = fresh_topic()
    consumers = [client.subscribe(topic, "s", ConsumerType.KeyShared) for _ in range(3)]
    producer = client.create_producer(topic)
    for number in range(300):
        producer.send_async(b"%d" % number, None, partition_key=f"key-{number % 30}")
    producer.flush()
    seen: dict[str, list[tuple[int, int]]] = {}
    for who, share in enumerate(shares(consumers, 300)):
        for message in share:
            seen.setdefault(message.partition_key(), []).append((who, int(message.data())))
    assert {key: [number for _, number in got] for key, got in seen.items()} == {
        f"key-{rest}": list(range(rest, 300, 30)) for rest in range(30)
    }
    assert all(len({who for who, _ in got}) == 1 for got in seen.values()), (
        "a key went to two consumers"
    )
    assert len({who for got in seen.values() for who, _ in got}) > 1, "one consumer got every key"


def test_another_consumer_takes_over(client: Client) -> None:
    topic = fresh_topic()
    consumers = [
        client.subscribe(topic, "s", ConsumerType.Failover, consumer_name=name)
        for name in ("a", "b")
    ]
    producer = client.create_producer(topic)
    for payload in numbered(2):
        producer.send(payload)
        served, message = receive_from_any(consumers)  # the broker chooses which of them
        assert message.data() == payload
        consumers.remove(served)
        served.close()


def receive_from_any(consumers: list[Consumer]) -> tuple[Consumer, Message]:
    """Return the next message of any of `consumers`, already acknowledged, and its consumer."""
    deadline = time.monotonic() + RECEIVE_MS / 1000
    for consumer in itertools.cycle(consumers):
        try:
            message = consumer.receive(100)
        except client_library.Timeout:
            assert time.monotonic() < deadline, "none of the consumers got a message"
            continue
        consumer.acknowledge(message)
        return consumer, message
    raise AssertionError("there are no consumers")


def test_a_negative_acknowledgement_brings_the_message_back(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(
        topic, "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
    )
    client.create_producer(topic).send(b"again")
    first = consumer.receive(RECEIVE_MS)
    consumer.negative_acknowledge(first)
    (second,) = receive(consumer, 1)
    assert (first.redelivery_count(), second.redelivery_count()) == (0, 1)
    assert second.data() == b"again"


def test_a_consumer_can_request_redelivery(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(5))
    unacknowledged = [consumer.receive(RECEIVE_MS).data() for _ in range(5)]
    consumer.redeliver_unacknowledged_messages()
    assert unacknowledged == payloads(receive(consumer, 5)) == numbered(5)


def test_a_message_that_keeps_failing_becomes_a_dead_letter(client: Client) -> None:
    topic = fresh_topic()
    policy = client_library.ConsumerDeadLetterPolicy(2, topic + "-dead", "kept")
    consumer = client.subscribe(
        topic,
        "s",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=policy,
    )
    dead = client.subscribe(topic + "-dead", "kept", initial_position=EARLIEST)
    client.create_producer(topic).send(b"poison", properties={"why": "kept"})
    for _ in range(3):
        consumer.negative_acknowledge(consumer.receive(RECEIVE_MS))
    # The client moves the message when it asks for the next.
    served, letter = receive_from_any([dead, consumer])
    assert served is dead
    assert (letter.data(), letter.properties()["why"]) == (b"poison", "kept")


def test_unacknowledged_messages_go_to_the_next_consumer(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(10))
    receive(consumer, 4)
    consumer.close()
    assert payloads(receive(client.subscribe(topic, "s"), 6)) == numbered(6, start=4)


def test_one_acknowledgement_may_cover_all_messages_before_it(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(10))
    messages = [consumer.receive(RECEIVE_MS) for _ in range(10)]
    consumer.acknowledge_cumulative(messages[6])
    consumer.close()
    assert payloads(receive(client.subscribe(topic, "s"), 3)) == numbered(3, start=7)


def test_acknowledgements_reach_the_broker(client: Client, brokers: Brokers) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(10))
    wait_until(lambda: brokers.backlog(topic, "s") == 10)
    receive(consumer, 10)
    wait_until(lambda: brokers.backlog(topic, "s") == 0)


def test_messages_of_a_batch_can_be_acknowledged_one_by_one(client: Client) -> None:
    topic = fresh_topic()
    options = {"consumer_type": ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = client.subscribe(topic, "s", **options)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=100
    )
    send_all(producer, numbered(10))
    messages = [consumer.receive(RECEIVE_MS) for _ in range(10)]
    for message in messages[::2]:
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s", **options)
    assert sorted(payloads(receive(again, 5))) == sorted(numbered(10)[1::2])
    assert_silent(again)


def test_a_consumer_can_unsubscribe(client: Client, brokers: Brokers) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    assert brokers.subscriptions(topic) == {"s"}
    consumer.unsubscribe()
    assert brokers.subscriptions(topic) == set()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_consumer_may_request_few_messages_at_a_time(client: Client, size: int) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", receiver_queue_size=size)
    send_all(client.create_producer(topic), numbered(30))
    received = []
    patience = () if size == 0 else (RECEIVE_MS,)  # the client knows no timeout with size 0
    for _ in range(30):
        message = consumer.receive(*patience)
        consumer.acknowledge(message)
        received.append(message.data())
    assert received == numbered(30)


def test_messages_can_be_received_in_bulk(client: Client) -> None:
    topic = fresh_topic()
    policy = client_library.ConsumerBatchReceivePolicy(10, -1, 5000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    send_all(client.create_producer(topic), numbered(20))
    assert [payloads(consumer.batch_receive()) for _ in range(2)] == [
        numbered(10),
        numbered(10, start=10),
    ]


def test_a_listener_is_called(client: Client) -> None:
    topic = fresh_topic()
    heard: list[bytes] = []

    def listen(consumer: Consumer, message: Any) -> None:
        heard.append(message.data())
        consumer.acknowledge(message)

    client.subscribe(topic, "s", message_listener=listen)
    send_all(client.create_producer(topic), numbered(20))
    wait_until(lambda: len(heard) == 20)
    assert heard == numbered(20)


@pytest.fixture
def stored(client: Client) -> tuple[str, list[Any]]:
    """Return a topic with ten messages, and their ids."""
    topic = fresh_topic()
    client.subscribe(topic, "keeps everything").close()
    producer = client.create_producer(topic)
    return topic, [producer.send(payload) for payload in numbered(10)]


def test_a_subscription_may_start_at_the_oldest_message(
    client: Client, stored: tuple[str, list[Any]]
) -> None:
    topic, _ = stored
    consumer = client.subscribe(topic, "late", initial_position=EARLIEST)
    assert payloads(receive(consumer, 10)) == numbered(10)


def test_seek_goes_back_to_the_start(client: Client, stored: tuple[str, list[Any]]) -> None:
    topic, _ = stored
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    receive(consumer, 10)
    consumer.seek(MessageId.earliest)
    assert payloads(receive(consumer, 10)) == numbered(10)


def test_seek_goes_to_a_message(client: Client, stored: tuple[str, list[Any]]) -> None:
    topic, ids = stored
    consumer = client.subscribe(
        topic, "s", initial_position=EARLIEST, start_message_id_inclusive=True
    )
    receive(consumer, 10)
    consumer.seek(ids[7])
    assert payloads(receive(consumer, 3)) == numbered(3, start=7)


def test_seek_goes_to_a_time(client: Client) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"before")
    time.sleep(0.05)
    border_ms = int(time.time() * 1000)
    time.sleep(0.05)
    producer.send(b"after")
    receive(consumer, 2)
    consumer.seek(border_ms)
    assert payloads(receive(consumer, 1)) == [b"after"]


def test_the_last_message_id_can_be_queried(client: Client, stored: tuple[str, list[Any]]) -> None:
    topic, ids = stored
    found = client.subscribe(topic, "s").get_last_message_id()
    assert (found.ledger_id(), found.entry_id()) == (ids[-1].ledger_id(), ids[-1].entry_id())


def test_a_reader_reads_from_the_start_to_the_end(
    client: Client, stored: tuple[str, list[Any]]
) -> None:
    topic, _ = stored
    reader = client.create_reader(topic, MessageId.earliest)
    read_all = []
    while reader.has_message_available():
        read_all += read(reader, 1)
    assert read_all == numbered(10)


def test_a_reader_starts_after_a_message_and_seeks(
    client: Client, stored: tuple[str, list[Any]]
) -> None:
    topic, ids = stored
    reader = client.create_reader(topic, ids[6])
    assert read(reader, 3) == numbered(3, start=7)
    reader.seek(MessageId.earliest)
    assert read(reader, 10) == numbered(10)


def test_a_table_view_keeps_the_newest_message_of_each_key(client: Client) -> None:
    topic = fresh_topic()
    producer = client.create_producer(topic)
    for number in range(6):
        producer.send(b"%d" % number, partition_key=f"k{number % 2}")
    view = client.create_table_view(topic)
    assert {key: view.get(key) for key in ("k0", "k1")} == {"k0": b"4", "k1": b"5"}
    producer.send(b"6", partition_key="k0")
    wait_until(lambda: view.get("k0") == b"6")
    view.close()
