"""Moves of topics, and the memory bound."""

from __future__ import annotations

import pytest

from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.names import FullTopicName, parse_topic
from gateway.lab.sandbox.record import OVERHEAD
from gateway.wire.pulsar.frames import Kind
from tests.unit.lab.sandbox.playbook import TOPIC, URLS, Client, kinds_of

ROOM = 10
"""Number of kilobyte entries that fit into a small cluster."""


def full_name(text: str) -> FullTopicName:
    name = parse_topic(text)
    assert name is not None
    return name


# -- moves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("assigned", [True, False])
def test_a_move_closes_all_clients_and_may_name_the_new_owner(
    cluster: SandboxCluster, client: Client, other: Client, *, assigned: bool
) -> None:
    client.produce()
    other.subscribe()
    assert cluster.move(full_name(TOPIC), assigned=assigned) == {full_name(TOPIC): URLS[1]}
    closes = client.read() + other.read()
    assert kinds_of(closes) == ["CloseProducer", "CloseConsumer"]
    told = [close.assignedBrokerServiceUrl for close in closes]
    assert told == [URLS[1] if assigned else ""] * 2
    assert {close.request_id for close in closes} == {(1 << 64) - 1}


def test_nothing_is_lost_by_a_move(cluster: SandboxCluster, client: Client) -> None:
    client.produce()
    ids = client.send(b"a", b"b", b"c")
    client.subscribe()
    client.acknowledge(ids[0])
    cluster.move(full_name(TOPIC), assigned=True)
    there = Client(cluster, broker=1)
    there.produce()
    later = there.send(b"d")
    there.subscribe(permits=0)
    there.flow(10)
    assert there.received() == [b"b", b"c", b"d"]
    assert later[0][0] > ids[0][0], "another broker writes another ledger"


def test_deliveries_before_a_move_can_be_acknowledged_after_it(
    cluster: SandboxCluster, client: Client
) -> None:
    client.produce()
    ids = client.send(b"a", b"b")
    cluster.move(full_name(TOPIC), assigned=True)
    there = Client(cluster, broker=1)
    there.subscribe()
    there.acknowledge(*ids)
    there.session.close()
    there = Client(cluster, broker=1)
    there.subscribe(permits=0)
    there.flow(10)
    assert there.received() == []


def test_a_moved_topic_is_found_at_its_new_broker(cluster: SandboxCluster, client: Client) -> None:
    cluster.move(full_name(TOPIC), assigned=True)
    assert client.ask(Kind.LOOKUP, topic=TOPIC, request_id=7).brokerServiceUrl == URLS[1]
    cluster.move(full_name(TOPIC), assigned=True)
    assert client.ask(Kind.LOOKUP, topic=TOPIC, request_id=7).brokerServiceUrl == URLS[0]


def test_all_partitions_of_a_topic_move(cluster: SandboxCluster) -> None:
    parted = full_name("parted")
    cluster.create(parted, 3)
    before = {part: cluster.owner(part) for part in map(parted.part, range(3))}
    moved = cluster.move(parted, assigned=True)
    assert moved == {part: URLS[1 - owner] for part, owner in before.items()}


def test_a_topic_is_created_once(cluster: SandboxCluster) -> None:
    assert cluster.create(full_name("new"), 3) is None
    assert cluster.create(full_name("new"), 3) is None
    assert cluster.create(full_name("new"), 4)
    assert cluster.create(full_name(TOPIC), 2)
    assert cluster.create(full_name("new-partition-0"), 0)


# -- bounds --------------------------------------------------------------------------------------


@pytest.fixture
def small() -> SandboxCluster:
    return SandboxCluster(URLS[:1], memory=ROOM * (1024 + OVERHEAD))


def kilobyte(number: int) -> bytes:
    """Return a payload whose entry takes at least a kilobyte."""
    return b"%d" % number + bytes(1023)


def fill(client: Client, count: int, start: int = 0, id: int = 1) -> list[tuple[int, int]]:
    return client.send(*(kilobyte(number) for number in range(start, start + count)), id=id)


def test_entries_beyond_the_bound_are_evicted_oldest_first(small: SandboxCluster) -> None:
    client = Client(small)
    client.produce()
    fill(client, 3 * ROOM)
    client.subscribe(permits=0)
    client.flow(1000)
    found = client.received()
    assert found == [kilobyte(it) for it in range(3 * ROOM - len(found), 3 * ROOM)]
    assert ROOM - 2 <= len(found) <= ROOM
    assert small.used <= ROOM * (1024 + OVERHEAD)


def test_the_oldest_entry_of_all_topics_is_evicted(small: SandboxCluster) -> None:
    client = Client(small)
    client.produce(id=1, topic="old")
    fill(client, 3, id=1)
    client.produce(id=2, topic="new")
    fill(client, 3 * ROOM, id=2)
    assert len(small.topics[full_name("old")].log) == 0
    assert small.topics[full_name("old")].log.bytes == 0


def test_a_subscription_continues_behind_evicted_entries(small: SandboxCluster) -> None:
    client = Client(small)
    client.produce()
    client.subscribe(permits=2, subType=1)
    first = client.send(kilobyte(0), kilobyte(1))
    client.take()
    fill(client, 3 * ROOM, start=2)
    (topic,) = small.topics.values()
    subscription = topic.subscriptions["s"]
    assert subscription.cursor.backlog == len(topic.log)
    assert subscription.pending == {}
    client.acknowledge(*first)
    client.flow(1000)
    assert client.received()[-1] == kilobyte(3 * ROOM + 1)


def test_an_entry_larger_than_the_bound_is_kept_alone(small: SandboxCluster) -> None:
    client = Client(small)
    client.produce()
    client.send(bytes(ROOM * 2048), b"a")
    (topic,) = small.topics.values()
    assert len(topic.log) == 1


def test_topics_are_bounded(cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.lab.sandbox.cluster.MOST_TOPICS", 1)
    refused = [Client(cluster, broker).produce(topic="new") for broker in (0, 1)]
    assert {kind for it in refused for kind in kinds_of([it])} == {"Error"}
    assert cluster.create(full_name("new"), 5)


def test_subscriptions_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.lab.sandbox.topic.MOST_SUBSCRIPTIONS", 1)
    client.subscribe(subscription="a")
    (answer,) = client.subscribe(2, subscription="b", permits=0)
    assert "too many subscriptions" in answer.message


def test_producers_and_consumers_of_a_connection_are_bounded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.lab.sandbox.session.MOST_HANDLES", 1)
    client.produce(1)
    assert kinds_of([client.produce(2)]) == ["Error"]
