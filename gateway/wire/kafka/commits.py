"""Reads the offsets that consumer groups commit.

A commit request has the offsets. Its response says for which partitions the broker has accepted
them. Offsets that are committed in a transaction are counted as soon as the broker accepts them,
although the client may still abort the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.in_flight import Asked
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan, text_at, topic_at
from gateway.wire.slices import Slices

COMMITS = {8: 10, 28: 32767}
"""The API keys of OffsetCommit and TxnOffsetCommit, each with its first version that names topics
by id."""

DELETE_GROUPS = 42

MOST = 1000
"""The most partitions of one request whose offsets are kept until its response comes; a member of a
group rarely has more. A larger request passes whole, and metrics lack the others."""

_ID = "Topics/TopicId"
_NAMES = ("Topics/Name", _ID)
_PARTITION = "Topics/Partitions/PartitionIndex"
_OFFSET = "Topics/Partitions/CommittedOffset"
_ERROR = "Topics/Partitions/ErrorCode"
_REQUESTED = frozenset({"GroupId", *_NAMES, _PARTITION, _OFFSET})
_ANSWERED = frozenset({*_NAMES, _PARTITION, _ERROR})
_DELETED = frozenset({"Results/GroupId", "Results/ErrorCode"})


SIZE = 200
"""Bytes of the budget that each kept offset takes."""


class Commit(NamedTuple):
    """The offsets in a commit request. `request`: the in-flight entry of this request. `offsets`:
    by topic and partition; the topic is a name or an id, as the request has it."""

    request: Asked
    group: bytes
    offsets: Mapping[tuple[bytes, int], int]

    @property
    def size(self) -> int:
        """Return how many bytes of the memory budget these offsets take."""
        return SIZE * len(self.offsets)


class Committed(NamedTuple):
    """One offset that a broker has accepted. `topic`: the name or id of its topic."""

    topic: bytes
    partition: int
    offset: int


def commit_of(schema: Schema, head: Head, frame: bytes, request: Asked) -> Slices[Commit]:
    """Return the offsets in the frame of a commit request. `request`: the request's in-flight
    entry. Raises `PeerError` if the frame is truncated."""
    flexible = head.version >= schema.flexible
    group = topic = b""
    partition = 0
    offsets: dict[tuple[bytes, int], int] = {}
    for place in plan(schema, head.version, _REQUESTED).found(frame, head.body, len(frame)):
        if len(offsets) >= MOST:
            break
        if place is None:
            yield
        elif place.name == _PARTITION:
            partition = int.from_bytes(frame[place.start : place.end], signed=True)
        elif place.name == _OFFSET:
            offset = int.from_bytes(frame[place.start : place.end], signed=True)
            offsets[topic, partition] = offset
        elif place.name == "GroupId":
            group = text_at(frame, place, flexible=flexible) or b""
        else:
            topic = topic_at(frame, place, by_id=place.name == _ID, flexible=flexible)
    return Commit(request, group, offsets)


def accepted(
    schema: Schema, version: int, frame: bytes, start: int, commit: Commit
) -> Iterator[Committed | None]:
    """Yield the offsets of `commit` that the broker has accepted, and None where the caller should
    pause. `frame`: the broker's response, whose body begins at `start`. Raises `PeerError` if the
    response is truncated."""
    flexible = version >= schema.flexible
    topic, partition = b"", 0
    for place in plan(schema, version, _ANSWERED).found(frame, start, len(frame)):
        if place is None:
            yield None
        elif place.name == _PARTITION:
            partition = int.from_bytes(frame[place.start : place.end], signed=True)
        elif place.name != _ERROR:
            topic = topic_at(frame, place, by_id=place.name == _ID, flexible=flexible)
        elif not any(frame[place.start : place.end]):
            offset = commit.offsets.get((topic, partition), -1)
            if offset >= 0:
                yield Committed(topic, partition, offset)


def deleted(schema: Schema, version: int, frame: bytes, start: int) -> Iterator[bytes]:
    """Yield the names of the groups that a DeleteGroups response, whose body begins at `start`,
    reports as deleted. Raises `PeerError` if the response is truncated."""
    flexible = version >= schema.flexible
    group = b""
    for place in plan(schema, version, _DELETED).found(frame, start, len(frame)):
        if place is None:
            continue
        if place.name == "Results/GroupId":
            group = text_at(frame, place, flexible=flexible) or b""
        elif not any(frame[place.start : place.end]):
            yield group
