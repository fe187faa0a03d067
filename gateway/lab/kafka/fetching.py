"""Handlers of consumers that read partitions: batches, and offsets by time.

Fetch sessions (KIP-227) are a broker's to grant, and this one grants none: each request names all
its partitions.

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
"""A client waits for its answer for some thirty seconds; then it is gone."""

MOST_BYTES = 16 * 1024 * 1024
"""Batches of one answer; clients ask for up to 50 MiB, and take less."""

_UNKNOWN = -1
_LATEST, _EARLIEST, _NEWEST, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
"""Times that stand for an offset."""


@dataclass(slots=True)
class _Gathered:
    """What is there for an answer. `size`: bytes of its batches."""

    size: int = 0
    is_failing: bool = False
    responses: list[Struct] = field(default_factory=list)
    leaders: set[int] = field(default_factory=set)


async def fetch(session: KafkaSession, request: Request) -> Struct:
    """Answer batches, when there are enough of them or the client's patience is over."""
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
    told = {"Responses": gathered.responses}
    leaders = endpoints(session.cluster, gathered.leaders)
    return {**told, "NodeEndpoints": leaders} if leaders else told


def _gather(session: KafkaSession, body: Struct) -> _Gathered:
    gathered = _Gathered()
    most = min(body["MaxBytes"], MOST_BYTES)
    for wanted in body["Topics"]:
        topic = topic_of(session.cluster, wanted, "Topic")
        partitions = []
        for it in wanted["Partitions"]:
            room = min(it["PartitionMaxBytes"], most - gathered.size)
            told = _partition(session, topic, it, room, at_least_one=not gathered.size)
            gathered.size += len(told["Records"])
            gathered.is_failing = gathered.is_failing or bool(told["ErrorCode"])
            if "CurrentLeader" in told:
                gathered.leaders.add(told["CurrentLeader"]["LeaderId"])
            partitions.append(told)
        named = {it: wanted[it] for it in ("Topic", "TopicId") if it in wanted}
        gathered.responses.append({**named, "Partitions": partitions})
    return gathered


def _partition(
    session: KafkaSession, topic: Topic | Error, wanted: Struct, room: int, *, at_least_one: bool
) -> Struct:
    number, offset = wanted["Partition"], wanted["FetchOffset"]
    found = led(session, topic, number, wanted.get("CurrentLeaderEpoch", _UNKNOWN))
    if isinstance(found, Error):
        leader = current(topic, number) if found == Error.NOT_LEADER_OR_FOLLOWER else {}
        return {**_answer(number, None), "ErrorCode": found, **leader}
    log = found.log
    if not log.start <= offset <= log.end:
        return {**_answer(number, None), "ErrorCode": Error.OFFSET_OUT_OF_RANGE}
    return {**_answer(number, log), "Records": log.read(offset, room, at_least_one=at_least_one)}


def _answer(number: int, log: PartitionLog | None) -> Struct:
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
    """Answer the offset at a time, or at the start or the end."""
    topics = []
    for wanted in request.body["Topics"]:
        topic = topic_of(session.cluster, wanted)
        partitions = [_offset(session, topic, it) for it in wanted["Partitions"]]
        topics.append({"Name": wanted["Name"], "Partitions": partitions})
    return {"Topics": topics}


def _offset(session: KafkaSession, topic: Topic | Error, wanted: Struct) -> Struct:
    number = wanted["PartitionIndex"]
    found = led(session, topic, number, wanted.get("CurrentLeaderEpoch", _UNKNOWN))
    nothing = {"PartitionIndex": number, "Timestamp": _UNKNOWN, "Offset": _UNKNOWN}
    if isinstance(found, Error):
        return {**nothing, "ErrorCode": found, "LeaderEpoch": _UNKNOWN}
    offset, time = _at(found.log, wanted["Timestamp"])
    told = {"Timestamp": time, "Offset": offset}
    epoch = _UNKNOWN if offset == _UNKNOWN else found.epoch
    return {**nothing, **told, "ErrorCode": Error.NONE, "LeaderEpoch": epoch}


def _at(log: PartitionLog, time: int) -> tuple[int, int]:
    """Return an offset and the time of its record; both -1 if there is none."""
    if time == _LATEST:
        return log.end, _UNKNOWN
    if time in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start, _UNKNOWN
    found = log.newest() if time == _NEWEST else log.at_time(time) if time >= 0 else None
    return found or (_UNKNOWN, _UNKNOWN)


HANDLERS: Mapping[int, Handler] = {Key.FETCH: fetch, Key.LIST_OFFSETS: list_offsets}
