"""Handlers of requests that read partitions: batches, and offsets by time.

Brokers may grant fetch sessions (KIP-227). The sandbox grants none, so each request names all its
partitions.

Sources: KIP-74 (the first batch is sent whole), KIP-320 (epochs of leaders), KIP-951 (new leaders).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.leading import current, led, topic_of
from gateway.lab.kafka.metadata import endpoints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.kafka.cluster import Topic
    from gateway.lab.kafka.log import PartitionLog
    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

LONGEST_WAIT_MS = 60_000
"""A client waits for a response for some thirty seconds; then it is gone."""

MOST_BYTES = 16 * 1024 * 1024
"""Bytes of the batches of one response; clients ask for up to 50 MiB, and take less."""

_UNKNOWN = -1
_LATEST, _EARLIEST, _NEWEST, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
"""Times that stand for an offset."""


@dataclass(slots=True)
class _Gathered:
    """What a response will have. `size`: bytes of its batches."""

    size: int = 0
    is_failing: bool = False
    responses: list[Struct] = field(default_factory=list)
    leaders: set[int] = field(default_factory=set)


async def fetch(session: KafkaSession, request: Request) -> Struct:
    """Return the response to Fetch as soon as its batches have `MinBytes`, a partition has an
    error, or `MaxWaitMs` have passed."""
    body = request.body
    if body.get("SessionId", 0):
        return {"ErrorCode": Error.FETCH_SESSION_ID_NOT_FOUND}
    wait = min(max(0, body["MaxWaitMs"]), LONGEST_WAIT_MS) / 1000
    until = trio.current_time() + wait
    while True:
        gathered = _gather(session, body)
        if gathered.is_failing or gathered.size >= body["MinBytes"]:
            break
        with trio.move_on_at(until) as patience:
            await session.cluster.changed.park()
        if patience.cancelled_caught:
            gathered = _gather(session, body)
            break
    response = {"Responses": gathered.responses}
    leaders = endpoints(session.cluster, gathered.leaders)
    return {**response, "NodeEndpoints": leaders} if leaders else response


def _gather(session: KafkaSession, body: Struct) -> _Gathered:
    gathered = _Gathered()
    most = min(body["MaxBytes"], MOST_BYTES)
    for wanted in body["Topics"]:
        topic = topic_of(session.cluster, wanted, "Topic")
        partitions = []
        for partition in wanted["Partitions"]:
            room = min(partition["PartitionMaxBytes"], most - gathered.size)
            response = _partition(session, topic, partition, room, at_least_one=not gathered.size)
            gathered.size += len(response["Records"])
            gathered.is_failing = gathered.is_failing or bool(response["ErrorCode"])
            if "CurrentLeader" in response:
                gathered.leaders.add(response["CurrentLeader"]["LeaderId"])
            partitions.append(response)
        named = {name: wanted[name] for name in ("Topic", "TopicId") if name in wanted}
        gathered.responses.append({**named, "Partitions": partitions})
    return gathered


def _partition(
    session: KafkaSession, topic: Topic | Error, wanted: Struct, room: int, *, at_least_one: bool
) -> Struct:
    number, offset = wanted["Partition"], wanted["FetchOffset"]
    partition = led(session, topic, number, wanted.get("CurrentLeaderEpoch", _UNKNOWN))
    if isinstance(partition, Error):
        leader = current(topic, number) if partition == Error.NOT_LEADER_OR_FOLLOWER else {}
        return {**_response(number, None), "ErrorCode": partition, **leader}
    log = partition.log
    if not log.start <= offset <= log.end:
        return {**_response(number, None), "ErrorCode": Error.OFFSET_OUT_OF_RANGE}
    return {**_response(number, log), "Records": log.read(offset, room, at_least_one=at_least_one)}


def _response(number: int, log: PartitionLog | None) -> Struct:
    start, end = (log.start, log.end) if log else (_UNKNOWN, _UNKNOWN)
    return {
        "PartitionIndex": number,
        "ErrorCode": Error.NONE,
        "HighWatermark": end,
        "LastStableOffset": end,
        "LogStartOffset": start,
        "PreferredReadReplica": _UNKNOWN,
        "Records": b"",
    }


async def list_offsets(session: KafkaSession, request: Request) -> Struct:
    """Return the response to ListOffsets: for each partition its first offset, its end offset, or
    the offset at a time, as requested."""
    topics = []
    for wanted in request.body["Topics"]:
        topic = topic_of(session.cluster, wanted)
        partitions = [_offset(session, topic, partition) for partition in wanted["Partitions"]]
        topics.append({"Name": wanted["Name"], "Partitions": partitions})
    return {"Topics": topics}


def _offset(session: KafkaSession, topic: Topic | Error, wanted: Struct) -> Struct:
    number = wanted["PartitionIndex"]
    partition = led(session, topic, number, wanted.get("CurrentLeaderEpoch", _UNKNOWN))
    nothing = {"PartitionIndex": number, "Timestamp": _UNKNOWN, "Offset": _UNKNOWN}
    if isinstance(partition, Error):
        return {**nothing, "ErrorCode": partition, "LeaderEpoch": _UNKNOWN}
    offset, time = _at(partition.log, wanted["Timestamp"])
    record = {"Timestamp": time, "Offset": offset}
    epoch = _UNKNOWN if offset == _UNKNOWN else partition.epoch
    return {**nothing, **record, "ErrorCode": Error.NONE, "LeaderEpoch": epoch}


def _at(log: PartitionLog, time: int) -> tuple[int, int]:
    """Return an offset and the time of its record; both -1 if there is none."""
    if time == _LATEST:
        return log.end, _UNKNOWN
    if time in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start, _UNKNOWN
    record = log.newest() if time == _NEWEST else log.at_time(time) if time >= 0 else None
    return record or (_UNKNOWN, _UNKNOWN)


HANDLERS: Mapping[int, Handler] = {Key.FETCH: fetch, Key.LIST_OFFSETS: list_offsets}
