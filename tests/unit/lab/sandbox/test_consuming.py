"""Consumers and readers: deliveries, acknowledgements, redeliveries, initial positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.lab.sandbox import answers
from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError
from gateway.wire.pulsar.frames import Kind
from tests.support import frames
from tests.unit.lab.sandbox.playbook import NOW, TOPIC, Client, command_of, kinds_of, send

EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = range(4)
CUMULATIVE = {"ack_type": 1}
EARLIEST_ID = {"ledgerId": (1 << 64) - 1, "entryId": (1 << 64) - 1}
LATEST_ID = {"ledgerId": (1 << 63) - 1, "entryId": (1 << 63) - 1}


@pytest.fixture
def producer(cluster: SandboxCluster) -> Client:
    """Return a client with a producer."""
    client = Client(cluster)
    client.produce()
    return client


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def id_of(position: tuple[int, int]) -> dict[str, int]:
    return {"ledgerId": position[0], "entryId": position[1]}


def message_ids(client: Client) -> list[tuple[int, int]]:
    found = [command_of(frame).message_id for frame in client.take()]
    return [(id.ledgerId, id.entryId) for id in found]


# -- delivering ----------------------------------------------------------------------------------


def test_a_message_arrives_as_it_was_sent(producer: Client, client: Client) -> None:
    client.subscribe()
    tail = frames.tail(frames.metadata_of(5, partition_key="k"), b"payload")
    producer.session.receive(send(1, 5, tail), NOW)
    (message,) = client.take()
    assert message.endswith(tail)
    assert command_of(message).message_id.partition == -1


def test_a_message_names_its_partition(cluster: SandboxCluster) -> None:
    topic = f"{TOPIC}-partition-1"
    both = next(it for it in (Client(cluster, 0), Client(cluster, 1)) if _serves(it, topic))
    both.subscribe(topic=topic)
    both.send(b"a")
    both.session.receive(frames.send(1, 0), NOW)
    found = [it for it in both.read() if kinds_of([it]) == ["Message"]]
    assert {it.message_id.partition for it in found} == {1}


def _serves(client: Client, topic: str) -> bool:
    return kinds_of([client.produce(topic=topic)]) == ["ProducerSuccess"]


def test_no_message_is_sent_without_a_permit(producer: Client, client: Client) -> None:
    client.subscribe(permits=0)
    producer.send(*numbered(3))
    assert client.received() == []
    client.flow(2)
    assert client.received() == numbered(2)
    client.flow(5)
    assert client.received() == numbered(1, start=2)


def test_a_batch_takes_a_permit_for_each_message(producer: Client, client: Client) -> None:
    client.subscribe(permits=4)
    for sequence in range(3):
        producer.session.receive(frames.send(1, sequence, num_messages=3), NOW)
    assert len(client.take()) == 2
    client.flow(2)
    assert client.take() == []
    client.flow(1)
    assert len(client.take()) == 1


def test_a_consumer_whose_connection_is_congested_waits(producer: Client, client: Client) -> None:
    client.subscribe()
    client.is_congested = True
    producer.send(*numbered(3))
    assert client.received() == []
    client.is_congested = False
    client.session.resume()
    assert client.received() == numbered(3)


@pytest.mark.parametrize(("position", "expected"), [(0, []), (1, numbered(3))])
def test_a_new_subscription_begins_at_its_initial_position(
    producer: Client, client: Client, position: int, expected: list[bytes]
) -> None:
    producer.send(*numbered(3))
    (answer, *_) = client.subscribe(permits=0, initialPosition=position)
    assert (kinds_of([answer]), answer.request_id) == (["Success"], 201)
    client.flow(10)
    assert client.received() == expected


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
def test_a_topic_that_is_not_persistent_drops_what_nobody_may_get(
    cluster: SandboxCluster, kind: int
) -> None:
    """As a broker does, which keeps no such message for later."""
    topic = TOPIC.replace("persistent://", "non-persistent://")
    broker, sender = next(
        (it, client) for it in (0, 1) if _serves(client := Client(cluster, it), topic)
    )
    consumer = Client(cluster, broker)
    sender.send(*numbered(2))
    consumer.subscribe(topic=topic, permits=2, subType=kind, initialPosition=1)
    sender.send(*numbered(3, start=2))
    assert consumer.received() == numbered(2, start=2)
    consumer.flow(10)
    assert consumer.received() == []
    sender.send(*numbered(1, start=5))
    assert consumer.received() == numbered(1, start=5)
    consumer.say(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=1)
    assert consumer.received() == []


def test_subscriptions_do_not_share_their_messages(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subscription="a")
    other.subscribe(subscription="b")
    producer.send(*numbered(3))
    assert client.received() == other.received() == numbered(3)


# -- types of subscriptions ----------------------------------------------------------------------


def test_an_exclusive_subscription_has_one_consumer(client: Client, other: Client) -> None:
    client.subscribe()
    (answer,) = other.subscribe(permits=0)
    assert answer.error == ServerError.ConsumerBusy


def test_consumers_of_two_types_do_not_mix(client: Client, other: Client) -> None:
    client.subscribe(subType=SHARED)
    (answer,) = other.subscribe(subType=FAILOVER, permits=0)
    assert answer.error == ServerError.ConsumerBusy
    client.session.close()
    (answer, *_) = other.subscribe(subType=FAILOVER, permits=0)
    assert kinds_of([answer]) == ["Success"]


def test_shared_consumers_take_turns(producer: Client, client: Client, other: Client) -> None:
    client.subscribe(subType=SHARED)
    other.subscribe(subType=SHARED)
    producer.send(*numbered(6))
    assert client.received() == [b"0", b"2", b"4"]
    assert other.received() == [b"1", b"3", b"5"]


def test_a_shared_consumer_without_permits_is_passed_over(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=SHARED, permits=1)
    other.subscribe(subType=SHARED)
    producer.send(*numbered(4))
    assert client.received() == [b"0"]
    assert other.received() == numbered(3, start=1)


def test_a_closed_shared_consumer_leaves_its_messages_to_others(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=SHARED)
    other.subscribe(subType=SHARED)
    ids = producer.send(*numbered(4))
    client.acknowledge(ids[0])
    other.take()
    client.session.close()
    assert other.received() == [b"2"]


def test_each_failover_consumer_is_told_whether_it_is_active(client: Client, other: Client) -> None:
    (success, told) = client.subscribe(subType=FAILOVER, consumer_name="b", permits=0)
    assert kinds_of([success, told]) == ["Success", "ActiveConsumerChange"]
    assert told.is_active
    (_, told) = other.subscribe(subType=FAILOVER, consumer_name="c", permits=0)
    assert not told.is_active
    assert client.read() == []


def test_the_next_failover_consumer_gets_unacknowledged_messages(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=FAILOVER, consumer_name="a")
    other.subscribe(subType=FAILOVER, consumer_name="b")
    ids = producer.send(*numbered(3))
    client.acknowledge(ids[0])
    client.session.close()
    told, *messages = other.take()
    assert command_of(told).is_active
    assert len(messages) == 2


def test_a_failover_consumer_of_higher_priority_takes_over(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=FAILOVER, priority_level=1)
    producer.send(b"0")
    assert client.received() == [b"0"]
    (_, told, message) = other.subscribe(subType=FAILOVER, priority_level=0)
    assert told.is_active
    assert kinds_of([message]) == ["Message"]
    assert not client.read()[-1].is_active


def test_a_key_stays_with_its_consumer(producer: Client, client: Client, other: Client) -> None:
    client.subscribe(subType=KEY_SHARED)
    other.subscribe(subType=KEY_SHARED)
    for payload in numbered(3):
        for key in "abcdefgh":
            producer.send(payload + key.encode(), partition_key=key)
    mine, theirs = client.received(), other.received()
    assert mine
    assert theirs
    assert {it[1:] for it in mine}.isdisjoint(it[1:] for it in theirs)
    for code in b"abcdefgh":
        assert [it[:1] for it in mine + theirs if it[1] == code] == numbered(3)


def test_a_key_in_flight_stays_with_its_consumer(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=KEY_SHARED)
    ids = [producer.send(b"0", partition_key=key)[0] for key in "abcdefgh"]
    assert len(client.take()) == 8
    other.subscribe(subType=KEY_SHARED)
    for key in "abcdefgh":
        producer.send(b"1", partition_key=key)
    assert len(client.take()) == 8
    client.acknowledge(*ids)
    assert other.received() == []


def test_a_slow_key_shared_consumer_does_not_stop_the_others(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=KEY_SHARED, permits=0)
    other.subscribe(subType=KEY_SHARED)
    for payload in numbered(5):
        for key in "abcdefgh":
            producer.send(payload + key.encode(), partition_key=key)
    theirs = other.received()
    assert theirs
    client.flow(1000)
    mine = client.received()
    assert len(mine) + len(theirs) == 40
    for code in b"abcdefgh":
        assert [it[:1] for it in mine + theirs if it[1] == code] == numbered(5)


def test_entries_waiting_for_a_closed_key_shared_consumer_go_to_others(
    producer: Client, client: Client, other: Client
) -> None:
    client.subscribe(subType=KEY_SHARED, permits=0)
    other.subscribe(subType=KEY_SHARED)
    for key in "abcdefgh":
        producer.send(key.encode(), partition_key=key)
    theirs = other.received()
    client.session.close()
    assert sorted(theirs + other.received()) == [b"%c" % key for key in b"abcdefgh"]


def test_sticky_hash_ranges_are_refused(client: Client) -> None:
    sticky = {"keySharedMode": 1, "hashRanges": [{"start": 0, "end": 65535}]}
    (answer,) = client.subscribe(subType=KEY_SHARED, keySharedMeta=sticky, permits=0)
    assert answer.error == ServerError.NotAllowedError


# -- acknowledging -------------------------------------------------------------------------------


@pytest.fixture
def delivered(producer: Client, client: Client) -> Iterator[list[tuple[int, int]]]:
    """Yield the positions of five messages that a shared consumer has."""
    client.subscribe(subType=SHARED)
    yield producer.send(*numbered(5))
    client.session.close()


def again(cluster: SandboxCluster, **fields: Any) -> list[bytes]:
    """Return the messages that the subscription's next consumer gets."""
    client = Client(cluster)
    client.subscribe(permits=0, **fields)
    client.flow(1000)
    return client.received()


Delivered = list[tuple[int, int]]


def test_acknowledged_messages_are_not_redelivered(
    cluster: SandboxCluster, client: Client, delivered: Delivered
) -> None:
    client.acknowledge(delivered[1], delivered[3])
    client.session.close()
    assert again(cluster) == [b"0", b"2", b"4"]


def test_a_cumulative_acknowledgement_covers_earlier_entries(
    cluster: SandboxCluster, client: Client, delivered: Delivered
) -> None:
    client.acknowledge(delivered[2], **CUMULATIVE)
    client.session.close()
    assert again(cluster) == [b"3", b"4"]


def test_an_acknowledgement_is_answered_on_request(client: Client, delivered: Delivered) -> None:
    client.take()
    client.acknowledge(delivered[0])
    assert client.take() == []
    client.acknowledge(delivered[1], request_id=9)
    (answer,) = client.read()
    assert (answer.request_id, answer.consumer_id) == (9, 1)
    assert not answer.HasField("error")


def test_an_acknowledgement_in_a_transaction_is_refused(
    cluster: SandboxCluster, client: Client, delivered: Delivered
) -> None:
    client.take()
    client.acknowledge(delivered[0], request_id=9, txnid_most_bits=1)
    (answer,) = client.read()
    assert answer.error == ServerError.NotAllowedError
    client.session.close()
    assert len(again(cluster)) == 5


def test_acknowledging_unknown_positions_is_harmless(
    cluster: SandboxCluster, client: Client, delivered: Delivered
) -> None:
    ledger, last = delivered[-1]
    client.acknowledge((ledger, last + 1), (ledger + 7, 0), (0, 0))
    client.acknowledge((ledger, last + 1), **CUMULATIVE)
    client.session.close()
    assert len(again(cluster)) == 5


def test_a_batch_is_acknowledged_when_all_its_messages_are(
    cluster: SandboxCluster, producer: Client, client: Client
) -> None:
    client.subscribe()
    producer.session.receive(frames.send(1, 0, num_messages=3), NOW)
    ((ledger, entry),) = message_ids(client)

    def left(bits: int) -> None:
        some = {"ledgerId": ledger, "entryId": entry, "ack_set": [bits], "batch_size": 3}
        client.say(Kind.ACK, consumer_id=1, ack_type=0, message_id=[some])

    left(0b110)
    left(0b011)
    redelivered = Client(cluster)
    client.session.close()
    (_, message) = redelivered.subscribe(permits=1)
    assert list(message.ack_set) == [0b010]
    some = {"ledgerId": ledger, "entryId": entry, "ack_set": [0b101], "batch_size": 3}
    redelivered.say(Kind.ACK, consumer_id=1, ack_type=0, message_id=[some])
    redelivered.session.close()
    assert again(cluster) == []


def test_bit_sets_are_written_as_signed_words() -> None:
    for bits in (0, 1, 1 << 63, (1 << 64) - 1, 1 << 64, (1 << 200) | 5):
        words = answers.words(bits)
        assert answers.bits(words) == bits
        assert all(-(1 << 63) <= word < 1 << 63 for word in words)


# -- redelivering --------------------------------------------------------------------------------


def test_a_negative_acknowledgement_redelivers_and_counts(
    client: Client, delivered: Delivered
) -> None:
    client.take()
    for count in (1, 2):
        ids = [id_of(delivered[1])]
        client.say(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=1, message_ids=ids)
        (message,) = client.read()
        assert (message.message_id.entryId, message.redelivery_count) == (delivered[1][1], count)


def test_acknowledged_messages_are_not_redelivered_on_request(
    client: Client, delivered: Delivered
) -> None:
    client.acknowledge(delivered[1])
    client.take()
    ids = [id_of(delivered[1]), id_of((77, 7))]
    client.say(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=1, message_ids=ids)
    assert client.take() == []


def test_an_exclusive_consumer_gets_all_redelivered_in_order(
    producer: Client, client: Client
) -> None:
    client.subscribe(consumer_epoch=0)
    ids = producer.send(*numbered(3))
    client.acknowledge(ids[0])
    client.take()
    client.say(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=1, consumer_epoch=4)
    frames = client.take()
    assert [command_of(it).message_id.entryId for it in frames] == [id[1] for id in ids[1:]]
    assert {command_of(it).consumer_epoch for it in frames} == {4}
    assert {command_of(it).redelivery_count for it in frames} == {0}


def test_a_closed_consumer_leaves_its_messages_to_the_next(
    cluster: SandboxCluster, client: Client, delivered: Delivered
) -> None:
    client.take()
    answer = client.ask(Kind.CLOSE_CONSUMER, consumer_id=1, request_id=9)
    assert kinds_of([answer]) == ["Success"]
    assert len(again(cluster, subType=SHARED)) == len(delivered)


# -- readers and places --------------------------------------------------------------------------

READER: dict[str, Any] = {"durable": False, "subscription": "reader"}


@pytest.mark.parametrize(("start", "count"), [(EARLIEST_ID, 5), (LATEST_ID, 0)])
def test_a_reader_begins_at_the_earliest_or_latest(
    producer: Client, client: Client, start: dict[str, int], count: int
) -> None:
    producer.send(*numbered(5))
    client.subscribe(permits=0, start_message_id=start, **READER)
    client.flow(100)
    assert client.received() == numbered(5)[:count]


def test_a_reader_begins_with_the_named_message(producer: Client, client: Client) -> None:
    ids = producer.send(*numbered(5))
    client.subscribe(permits=0, start_message_id=id_of(ids[3]), **READER)
    client.flow(100)
    assert client.received() == numbered(2, start=3)


def test_a_reader_begins_some_seconds_ago(producer: Client, client: Client) -> None:
    producer.send(b"old", publish_time=int((NOW - 60) * 1000))
    producer.send(b"new", publish_time=int((NOW - 5) * 1000))
    client.subscribe(permits=0, start_message_rollback_duration_sec=30, **READER)
    client.flow(100)
    assert client.received() == [b"new"]


def test_a_closed_reader_leaves_no_subscription(cluster: SandboxCluster, client: Client) -> None:
    (topic,) = cluster.topics.values()
    client.subscribe(start_message_id=EARLIEST_ID, **READER)
    assert set(topic.subscriptions) == {"reader"}
    client.session.close()
    assert topic.subscriptions == {}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"message_id": EARLIEST_ID}, numbered(5)),
        ({"message_id": LATEST_ID}, []),
        ({"message_publish_time": frames.TIME + 3}, numbered(2, start=3)),
        ({"message_publish_time": frames.TIME + 99}, []),
    ],
)
def test_a_subscription_seeks(
    cluster: SandboxCluster, producer: Client, client: Client, target: Any, expected: list[bytes]
) -> None:
    client.subscribe()
    for number in range(5):
        producer.send(b"%d" % number, publish_time=frames.TIME + number)
    client.take()
    client.say(Kind.SEEK, consumer_id=1, request_id=9, **target)
    assert kinds_of(client.read()) == ["CloseConsumer", "Success"]
    assert again(cluster) == expected


def test_the_last_message_id_is_returned(producer: Client, client: Client) -> None:
    client.subscribe(permits=0)
    ask = {"consumer_id": 1, "request_id": 9}
    answer = client.ask(Kind.GET_LAST_MESSAGE_ID, **ask)
    assert answers.position(answer.last_message_id).entry == -1
    ids = producer.send(*numbered(3))
    client.acknowledge(ids[0])
    answer = client.ask(Kind.GET_LAST_MESSAGE_ID, **ask)
    assert answers.position(answer.last_message_id) == ids[2]
    assert answers.position(answer.consumer_mark_delete_position) == ids[0]
    assert answer.last_message_id.batch_index == -1
    producer.session.receive(frames.send(1, 9, num_messages=4), NOW)
    last = client.ask(Kind.GET_LAST_MESSAGE_ID, **ask).last_message_id
    assert (last.entryId, last.batch_index) == (ids[2][1] + 1, 3)


# -- the end -------------------------------------------------------------------------------------


def test_a_subscription_ends_when_its_consumer_unsubscribes(
    cluster: SandboxCluster, client: Client
) -> None:
    client.subscribe()
    answer = client.ask(Kind.UNSUBSCRIBE, consumer_id=1, request_id=9)
    assert kinds_of([answer]) == ["Success"]
    assert [list(topic.subscriptions) for topic in cluster.topics.values()] == [[]]


def test_unsubscribing_beside_other_consumers_needs_force(client: Client, other: Client) -> None:
    client.subscribe(subType=SHARED)
    other.subscribe(subType=SHARED)
    ask = {"consumer_id": 1, "request_id": 9}
    assert client.ask(Kind.UNSUBSCRIBE, **ask).error == ServerError.MetadataError
    assert kinds_of([client.ask(Kind.UNSUBSCRIBE, force=True, **ask)]) == ["Success"]
    assert kinds_of(other.read()) == ["CloseConsumer"]


@pytest.mark.parametrize("kind", [Kind.SEEK, Kind.UNSUBSCRIBE, Kind.GET_LAST_MESSAGE_ID])
def test_a_request_of_an_unknown_consumer_is_refused(client: Client, kind: Kind) -> None:
    answer = client.ask(kind, consumer_id=9, request_id=9)
    assert answer.error == ServerError.ConsumerNotFound


def test_commands_of_a_closed_consumer_are_ignored(client: Client) -> None:
    client.flow(1)
    client.acknowledge((1, 1))
    client.say(Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=1)
    assert client.take() == []


def test_a_consumer_may_forbid_topic_creation(client: Client) -> None:
    (answer,) = client.subscribe(topic="new", force_topic_creation=False, permits=0)
    assert answer.error == ServerError.TopicNotFound


def test_a_subscription_needs_a_name(client: Client) -> None:
    (answer,) = client.subscribe(subscription="", permits=0)
    assert answer.error == ServerError.NotAllowedError
