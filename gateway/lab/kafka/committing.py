"""Handlers of the offsets that groups commit.

Sources: KIP-709 (several groups at once), KIP-848 (versions 9 and 10, of which members by epoch are
not served).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.grouping import misplaced
from gateway.lab.kafka.groups import LONGEST_ID, Committed, Group, State
from gateway.lab.kafka.leading import partition_of, topic_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

MOST_METADATA = 4096
"""Characters that a client may add to an offset, as of brokers."""

_NONE = Committed(-1, -1, "")
"""Stands for an offset that was never committed."""


async def commit(session: KafkaSession, request: Request) -> Struct:
    """Store the offsets that a group commits (OffsetCommit)."""
    group = _committing(session, request.body)
    topics = []
    for wanted in request.body["Topics"]:
        partitions = [
            _kept(session, group, wanted, partition) for partition in wanted["Partitions"]
        ]
        named = {name: wanted[name] for name in ("Name", "TopicId") if name in wanted}
        topics.append({**named, "Partitions": partitions})
    return {"Topics": topics}


def _committing(session: KafkaSession, body: Struct) -> Group | Error:
    """Return the group for which a client may commit; a group without members is anybody's."""
    id, generation = body["GroupId"], body["GenerationIdOrMemberEpoch"]
    refusal = misplaced(session, id)
    if refusal:
        return refusal
    now = trio.current_time()
    if len(id) > LONGEST_ID:
        return Error.INVALID_GROUP_ID
    group = session.groups.get(id, now)
    if group is None:
        if generation >= 0:
            return Error.ILLEGAL_GENERATION
        return session.groups.make(id, now) or Error.GROUP_MAX_SIZE_REACHED
    if generation < 0 and group.state == State.EMPTY:
        return group
    refusal = group.check(body["MemberId"], body.get("GroupInstanceId"), generation)
    if refusal:
        return refusal
    group.touch(body["MemberId"], now)
    return Error.REBALANCE_IN_PROGRESS if group.state == State.SHARING else group


def _kept(session: KafkaSession, group: Group | Error, topic: Struct, wanted: Struct) -> Struct:
    number, metadata = wanted["PartitionIndex"], wanted["CommittedMetadata"] or ""
    response = {"PartitionIndex": number}
    if isinstance(group, Error):
        return {**response, "ErrorCode": group}
    known = topic_of(session.cluster, topic)
    partition = partition_of(known, number)
    if isinstance(known, Error) or isinstance(partition, Error):
        return {**response, "ErrorCode": partition}
    if len(metadata) > MOST_METADATA:
        return {**response, "ErrorCode": Error.OFFSET_METADATA_TOO_LARGE}
    epoch = wanted.get("CommittedLeaderEpoch", _NONE.epoch)
    group.offsets[known.name, number] = Committed(wanted["CommittedOffset"], epoch, metadata)
    return {**response, "ErrorCode": Error.NONE}


async def committed(session: KafkaSession, request: Request) -> Struct:
    """Return the offsets that groups have committed (OffsetFetch). A request below version 8 is
    about one group."""
    if "Groups" in request.body:
        return {"Groups": [_group(session, wanted) for wanted in request.body["Groups"]]}
    group = _group(session, request.body)
    topics = [{name: topic[name] for name in ("Name", "Partitions")} for topic in group["Topics"]]
    return {"ErrorCode": group["ErrorCode"], "Topics": topics}


def _group(session: KafkaSession, wanted: Struct) -> Struct:
    id = wanted["GroupId"]
    refusal = misplaced(session, id)
    if refusal:
        return {"GroupId": id, "ErrorCode": refusal, "Topics": []}
    group = session.groups.get(id, trio.current_time())
    offsets = group.offsets if group else {}
    if wanted["Topics"] is None:
        topics = list(_all(session, offsets))
    else:
        topics = [_topic(session, offsets, topic) for topic in wanted["Topics"]]
    return {"GroupId": id, "ErrorCode": Error.NONE, "Topics": topics}


def _all(session: KafkaSession, offsets: Mapping[tuple[str, int], Committed]) -> Iterator[Struct]:
    """Yield all topics of which offsets are kept."""
    by_topic: dict[str, list[Struct]] = {}
    for (name, number), kept in offsets.items():
        by_topic.setdefault(name, []).append(_offset(number, kept))
    for name, partitions in by_topic.items():
        topic = session.cluster.topics[name]  # whose offsets end with it
        yield {"Name": name, "TopicId": topic.id, "Partitions": partitions}


def _topic(
    session: KafkaSession, offsets: Mapping[tuple[str, int], Committed], wanted: Struct
) -> Struct:
    known = topic_of(session.cluster, wanted)
    name = wanted.get("Name") if isinstance(known, Error) else known.name
    error = known if known == Error.UNKNOWN_TOPIC_ID else Error.NONE
    partitions = [
        {**_offset(number, offsets.get((name or "", number), _NONE)), "ErrorCode": error}
        for number in wanted["PartitionIndexes"]
    ]
    return {"Name": name, "TopicId": wanted.get("TopicId"), "Partitions": partitions}


def _offset(number: int, kept: Committed) -> Struct:
    return {
        "PartitionIndex": number,
        "CommittedOffset": kept.offset,
        "CommittedLeaderEpoch": kept.epoch,
        "Metadata": kept.metadata,
    }


HANDLERS: Mapping[int, Handler] = {Key.OFFSET_COMMIT: commit, Key.OFFSET_FETCH: committed}
