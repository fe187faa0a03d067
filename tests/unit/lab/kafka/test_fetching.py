"""What consumers get of a partition."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.fetching import LONGEST_WAIT_MS
from tests.unit.lab.kafka.conftest import TOPIC
from tests.unit.lab.kafka.playbook import Body, Brokers, Client, batch, fetch, fetched, produce

NOTHING = {"HighWatermark": -1, "LastStableOffset": -1, "Records": b""}


def offsets(data: bytes) -> list[int]:
    """Return the first offset of each batch."""
    found = []
    while data:
        found.append(int.from_bytes(data[:8]))
        data = data[12 + int.from_bytes(data[8:12]) :]
    return found


@pytest.fixture
async def filled(client: Client) -> Client:
    """Return a connection to the leader of a partition with batches at 0, 2 and 4."""
    for number in range(3):
        await produce(client, TOPIC, batch(b"a", b"b", time=1000 * number))
    return client


# -- batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 13))
async def test_each_version_gets_what_was_produced(filled: Client, version: int) -> None:
    found = await fetch(filled, TOPIC, 0, version)
    assert offsets(found["Records"]) == [0, 2, 4]
    assert (found["HighWatermark"], found["LastStableOffset"]) == (6, 6)


@pytest.mark.parametrize("version", range(13, 19))
async def test_newer_versions_name_topics_by_id(
    brokers: Brokers, filled: Client, version: int
) -> None:
    body = fetched(TOPIC, 0)
    partitions = body["Topics"][0]["Partitions"]
    ids = [brokers.cluster.topics[TOPIC].id, bytes(16)]
    body["Topics"] = [{"TopicId": id, "Partitions": partitions} for id in ids]
    told = await filled.ask(Key.FETCH, version, **body)
    first, second = (it["Partitions"][0] for it in told["Responses"])
    assert offsets(first["Records"]) == [0, 2, 4]
    assert second["ErrorCode"] == Error.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("offset", "found"), [(1, [0, 2, 4]), (2, [2, 4]), (5, [4]), (6, [])])
async def test_reading_begins_with_the_batch_that_holds_the_offset(
    filled: Client, offset: int, found: list[int]
) -> None:
    assert offsets((await fetch(filled, TOPIC, offset))["Records"]) == found


async def test_no_more_is_sent_than_the_client_takes_but_for_the_first_batch(
    filled: Client,
) -> None:
    size = len(batch(b"a", b"b"))
    for most, found in ((2 * size, [0, 2]), (2 * size - 1, [0]), (1, [0])):
        told = await fetch(filled, TOPIC, 0, PartitionMaxBytes=most)
        assert offsets(told["Records"]) == found
        told = await fetch(filled, TOPIC, 0, MaxBytes=most)
        assert offsets(told["Records"]) == found


async def test_the_first_batch_of_one_partition_alone_is_sent_however_large(
    brokers: Brokers,
) -> None:
    brokers.cluster.create("u", 2, leaders=[1, 1])
    client = brokers.client()
    for topic in (TOPIC, "u"):
        await produce(client, topic, batch(b"a" * 100))
    body = fetched(TOPIC, 0, MaxBytes=1)
    body["Topics"] += fetched("u", 0)["Topics"]
    told = await client.ask(Key.FETCH, 12, **body)
    found = [it["Partitions"][0]["Records"] for it in told["Responses"]]
    assert [offsets(it) for it in found] == [[0], []]


@pytest.mark.parametrize("offset", [-1, 7])
async def test_an_offset_that_is_not_there_is_out_of_range(filled: Client, offset: int) -> None:
    found = await fetch(filled, TOPIC, offset)
    assert found["ErrorCode"] == Error.OFFSET_OUT_OF_RANGE
    assert NOTHING.items() <= found.items()


async def test_a_broker_that_does_not_lead_names_the_leader(brokers: Brokers) -> None:
    body = fetched(TOPIC, 0)
    partitions = body["Topics"][0]["Partitions"]
    body["Topics"] = [{"TopicId": brokers.cluster.topics[TOPIC].id, "Partitions": partitions}]
    told = await brokers.client(2).ask(Key.FETCH, 16, **body)
    found = told["Responses"][0]["Partitions"][0]
    assert found["ErrorCode"] == Error.NOT_LEADER_OR_FOLLOWER
    assert found["CurrentLeader"] == {"LeaderId": 1, "LeaderEpoch": 0}
    assert [(it["NodeId"], it["Port"]) for it in told["NodeEndpoints"]] == [(1, 19092)]


async def test_the_epoch_of_the_leader_is_compared(brokers: Brokers) -> None:
    brokers.cluster.move(TOPIC, 0, 2)
    client = brokers.client(2)
    found = [await fetch(client, TOPIC, 0, CurrentLeaderEpoch=it) for it in (0, 1, 2, -1)]
    assert [it["ErrorCode"] for it in found] == [
        Error.FENCED_LEADER_EPOCH,
        Error.NONE,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.NONE,
    ]


async def test_no_session_is_granted(client: Client) -> None:
    told = await client.ask(Key.FETCH, 12, **fetched(TOPIC, 0, SessionId=0, SessionEpoch=0))
    assert (told["ErrorCode"], told["SessionId"]) == (Error.NONE, 0)
    told = await client.ask(Key.FETCH, 12, **fetched(TOPIC, 0, SessionId=5, SessionEpoch=1))
    assert told["ErrorCode"] == Error.FETCH_SESSION_ID_NOT_FOUND


# -- waiting -----------------------------------------------------------------------------------


class Waiting:
    """A Fetch that goes on. `told`: its answer, when it has come."""

    def __init__(self) -> None:
        self.told: Body | None = None

    async def ask(self, client: Client, **options: Any) -> None:
        body = fetched(TOPIC, 0, **{"MaxWaitMs": 10_000, **options})
        self.told = await client.ask(Key.FETCH, 12, **body)

    @property
    def partition(self) -> Body:
        assert self.told is not None
        found: Body = self.told["Responses"][0]["Partitions"][0]
        return found


async def test_a_fetch_waits_for_a_batch(brokers: Brokers, nursery: trio.Nursery) -> None:
    waiting = Waiting()
    nursery.start_soon(waiting.ask, brokers.client())
    await wait_all_tasks_blocked()
    assert waiting.told is None
    await produce(brokers.client(), TOPIC, batch(b"a"))
    await wait_all_tasks_blocked()
    assert offsets(waiting.partition["Records"]) == [0]


async def test_a_fetch_waits_for_enough_bytes(brokers: Brokers, nursery: trio.Nursery) -> None:
    waiting, size = Waiting(), len(batch(b"a"))
    nursery.start_soon(lambda: waiting.ask(brokers.client(), MinBytes=size + 1))
    for _ in range(2):
        assert waiting.told is None
        await produce(brokers.client(), TOPIC, batch(b"a"))
        await wait_all_tasks_blocked()
    assert offsets(waiting.partition["Records"]) == [0, 1]


@pytest.mark.parametrize(("asked", "waited"), [(10_000, 10.0), (10**9, LONGEST_WAIT_MS / 1000)])
async def test_a_fetch_ends_with_what_there_is(
    autojump_clock: MockClock, client: Client, asked: int, waited: float
) -> None:
    await produce(client, TOPIC, batch(b"a"))
    start, waiting = trio.current_time(), Waiting()
    await waiting.ask(client, MinBytes=10_000, MaxWaitMs=asked)
    assert trio.current_time() - start == pytest.approx(waited)
    assert offsets(waiting.partition["Records"]) == [0]


async def test_a_fetch_ends_when_its_leader_moves(brokers: Brokers, nursery: trio.Nursery) -> None:
    waiting = Waiting()
    nursery.start_soon(waiting.ask, brokers.client())
    await wait_all_tasks_blocked()
    brokers.cluster.move(TOPIC, 0, 2)
    await wait_all_tasks_blocked()
    assert waiting.partition["ErrorCode"] == Error.NOT_LEADER_OR_FOLLOWER


async def test_a_fetch_ends_when_its_topic_is_deleted(
    brokers: Brokers, nursery: trio.Nursery
) -> None:
    waiting = Waiting()
    nursery.start_soon(waiting.ask, brokers.client())
    await wait_all_tasks_blocked()
    await brokers.client().ask(Key.DELETE_TOPICS, 5, TopicNames=[TOPIC])
    await wait_all_tasks_blocked()
    assert waiting.partition["ErrorCode"] == Error.UNKNOWN_TOPIC_OR_PARTITION


# -- offsets by time ---------------------------------------------------------------------------


async def offset_at(client: Client, time: int, version: int = 11, **fields: Any) -> Body:
    partitions = [{"PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": time, **fields}]
    topics = [{"Name": TOPIC, "Partitions": partitions}]
    told = await client.ask(Key.LIST_OFFSETS, version, Topics=topics)
    found: Body = told["Topics"][0]["Partitions"][0]
    return found


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize(
    ("time", "offset", "found"),
    [
        (-1, 6, -1),
        (-2, 0, -1),
        (-3, 5, 2001),
        (-4, 0, -1),
        (-5, -1, -1),
        (0, 0, 0),
        (1001, 3, 1001),
        (1002, 4, 2000),
        (2002, -1, -1),
    ],
)
async def test_offsets_are_found_by_time(
    filled: Client, version: int, time: int, offset: int, found: int
) -> None:
    told = await offset_at(filled, time, version)
    assert (told["ErrorCode"], told["Offset"], told["Timestamp"]) == (0, offset, found)


async def test_an_empty_partition_has_no_newest_record(client: Client) -> None:
    assert (await offset_at(client, -3))["Offset"] == -1


async def test_only_the_leader_of_this_epoch_tells_offsets(brokers: Brokers) -> None:
    told = await offset_at(brokers.client(2), -1)
    assert (told["ErrorCode"], told["Offset"]) == (Error.NOT_LEADER_OR_FOLLOWER, -1)
    told = await offset_at(brokers.client(1), -1, CurrentLeaderEpoch=5)
    assert told["ErrorCode"] == Error.UNKNOWN_LEADER_EPOCH
