"""Offsets that groups commit."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.committing import MOST_METADATA
from tests.unit.lab.kafka.conftest import TOPIC
from tests.unit.lab.kafka.playbook import Body, Brokers, Client, errors

GROUP = "g"
NEVER = (-1, -1, "")


async def commit(client: Client, offset: int, version: int = 9, **fields: Any) -> int:
    """Commit an offset of the first partition; return the error."""
    partition: Body = {
        "PartitionIndex": 0,
        "CommittedOffset": offset,
        "CommittedLeaderEpoch": 4,
        "CommittedMetadata": "m",
    }
    partition |= {name: fields.pop(name) for name in list(fields) if name in partition}
    topic: Body = {name: fields.pop(name) for name in ("Name", "TopicId") if name in fields}
    body = {"GroupId": GROUP, "GenerationIdOrMemberEpoch": -1, **fields}
    topics = [{**(topic or {"Name": TOPIC}), "Partitions": [partition]}]
    told = await client.ask(Key.OFFSET_COMMIT, version, **body, Topics=topics)
    return int(told["Topics"][0]["Partitions"][0]["ErrorCode"])


async def committed(client: Client, version: int, topics: list[Body] | None) -> Body:
    """Ask for the offsets of the group; return what is told of it."""
    if version < 8:
        return await client.ask(Key.OFFSET_FETCH, version, GroupId=GROUP, Topics=topics)
    group = {"GroupId": GROUP, "Topics": topics}
    told = await client.ask(Key.OFFSET_FETCH, version, Groups=[group])
    (found,) = told["Groups"]
    return dict(found)


def offset(partition: Body) -> tuple[int, int, str]:
    """Return offset, epoch and metadata."""
    epoch = partition.get("CommittedLeaderEpoch", 4)
    return partition["CommittedOffset"], epoch, partition["Metadata"]


@pytest.fixture
def coordinator(brokers: Brokers) -> Client:
    return brokers.coordinator(GROUP)


@pytest.mark.parametrize("version", range(2, 10))
async def test_each_version_commits(coordinator: Client, version: int) -> None:
    assert await commit(coordinator, 7, version) == Error.NONE
    told = await committed(coordinator, 1, [{"Name": TOPIC, "PartitionIndexes": [0]}])
    assert told["Topics"][0]["Partitions"][0]["CommittedOffset"] == 7


@pytest.mark.parametrize("version", range(1, 10))
async def test_each_version_tells_what_was_committed(coordinator: Client, version: int) -> None:
    await commit(coordinator, 7)
    told = await committed(coordinator, version, [{"Name": TOPIC, "PartitionIndexes": [0, 1]}])
    first, second = told["Topics"][0]["Partitions"]
    assert offset(first) == (7, 4, "m")
    assert offset(second)[::2] == NEVER[::2]


@pytest.mark.parametrize("version", range(2, 10))
async def test_all_topics_are_told_where_none_is_named(coordinator: Client, version: int) -> None:
    assert (await committed(coordinator, version, None))["Topics"] == []
    await commit(coordinator, 7)
    told = await committed(coordinator, version, None)
    assert [(it["Name"], len(it["Partitions"])) for it in told["Topics"]] == [(TOPIC, 1)]


async def test_the_newest_versions_name_topics_by_id(brokers: Brokers, coordinator: Client) -> None:
    id = brokers.cluster.topics[TOPIC].id
    assert await commit(coordinator, 7, 10, TopicId=id) == Error.NONE
    assert await commit(coordinator, 7, 10, TopicId=bytes(16)) == Error.UNKNOWN_TOPIC_ID
    wanted = [{"TopicId": it, "PartitionIndexes": [0]} for it in (id, bytes(16))]
    told = await committed(coordinator, 10, wanted)
    found = [it["Partitions"][0] for it in told["Topics"]]
    assert errors(found) == [Error.NONE, Error.UNKNOWN_TOPIC_ID]
    assert [offset(it) for it in found] == [(7, 4, "m"), NEVER]
    assert [it["TopicId"] for it in (await committed(coordinator, 10, None))["Topics"]] == [id]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"Name": "u"}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"PartitionIndex": 2}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"CommittedMetadata": "x" * (MOST_METADATA + 1)}, Error.OFFSET_METADATA_TOO_LARGE),
        ({"GenerationIdOrMemberEpoch": 1}, Error.ILLEGAL_GENERATION),
    ],
)
async def test_what_cannot_be_committed_is_refused(
    coordinator: Client, fields: Body, error: Error
) -> None:
    assert await commit(coordinator, 7, **fields) == error


async def test_members_alone_commit_for_a_group_that_has_some(coordinator: Client) -> None:
    body = {
        "GroupId": GROUP,
        "SessionTimeoutMs": 10_000,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range"}],
    }
    joined = await coordinator.ask(Key.JOIN_GROUP, 3, **body)
    member = {"MemberId": joined["MemberId"], "GenerationIdOrMemberEpoch": 1}
    assert await commit(coordinator, 7) == Error.UNKNOWN_MEMBER_ID
    assert await commit(coordinator, 7, **member) == Error.REBALANCE_IN_PROGRESS
    who = {"MemberId": joined["MemberId"], "GenerationId": 1}
    await coordinator.ask(Key.SYNC_GROUP, GroupId=GROUP, **who)
    assert await commit(coordinator, 7, **member) == Error.NONE
    member["GenerationIdOrMemberEpoch"] = 2
    assert await commit(coordinator, 7, **member) == Error.ILLEGAL_GENERATION


async def test_a_broker_that_is_not_the_coordinator_says_so(brokers: Brokers) -> None:
    other = brokers.client(3 - brokers.cluster.coordinator(GROUP))
    assert await commit(other, 7) == Error.NOT_COORDINATOR
    for version in (7, 9):
        told = await committed(other, version, [{"Name": TOPIC, "PartitionIndexes": [0]}])
        assert told["ErrorCode"] == Error.NOT_COORDINATOR


async def test_offsets_end_with_their_topic(brokers: Brokers, coordinator: Client) -> None:
    await commit(coordinator, 7)
    await coordinator.ask(Key.DELETE_TOPICS, 5, TopicNames=[TOPIC])
    brokers.cluster.create(TOPIC, 2)
    assert (await committed(coordinator, 9, None))["Topics"] == []
