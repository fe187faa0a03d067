"""Reads frames of Produce and Fetch in one go, where they have the usual form: whole ones, and the
heads of those that a read cuts and that have one partition.

`traffic` reads any such frame, in whatever pieces it comes, with a generator that costs some
microseconds for each of its parts. Most frames are small and whole, and all their lengths take one
byte. What is here reads these, and gives up on all others, by returning None; it never reads
anything in another way than `traffic` does, which a test compares.

Offsets may run beyond the frame while a lie is read, and even beyond the chunk. So a frame counts
as read only if its last byte is where its size says.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from gateway.wire.kafka.frames import LONGEST_CLIENT
from gateway.wire.kafka.records import FORMAT, HEAD, SHORT
from gateway.wire.kafka.topics import ID
from gateway.wire.kafka.traffic import Portion
from gateway.wire.kafka.walk import unsigned

_short = struct.Struct(">h").unpack_from
_int = struct.Struct(">i").unpack_from
_batch = struct.Struct(">8xi4xb40xi").unpack_from  # length, format, number of messages
_end = struct.Struct(">i2xq").unpack_from  # a partition's index, an error, and where it ends

FLEXIBLE = {0: 9, 1: 12}
"""The first flexible versions of Produce and Fetch: older ones are read by `traffic` alone."""

BY_ID = 13
"""The first version of both that names topics by their ids."""

_LENGTHS = 16_384
"""Lengths of batches that are remembered, 2 MB: of all processes most batches are of few sizes."""

AFTER_LENGTH = 12
"""Bytes of a batch up to where its length begins to count."""


class Produced(NamedTuple):
    """What a Produce request has."""

    acks: int
    topics: list[Portion]


class Lead(NamedTuple):
    """What stands before the one partition of a Produce request, in `size` bytes."""

    size: int
    acks: int
    topic: bytes


def lead(chunk: bytearray, at: int, end: int, version: int) -> Lead | None:
    """Return what a request begins with whose client id begins at `at`; None: it has not all come,
    or the request has several partitions, or another form."""
    began = at
    try:
        client = _short(chunk, at)[0]
        if client > LONGEST_CLIENT:
            return None
        at += 2 + (client if client > 0 else 0)
        if chunk[at] or chunk[at + 1] or chunk[at + 8] != _ONE:
            return None
        acks = _short(chunk, at + 2)[0]
        at += 9
        topic, at = _topic(chunk, at, version)
        if chunk[at] != _ONE or at >= end:
            return None
        return Lead(at + 1 - began, acks, topic)
    except (IndexError, struct.error):
        return None


_ONE = 2
"""The compact length of one element."""

_MOST = 126
"""Elements of an array whose length takes one byte. A byte from 128 on begins a longer length: a
broker would read another number than the byte is."""


@lru_cache(_LENGTHS)
def length_of(size: int) -> bytes:
    """Return the compact length that stands before so many bytes."""
    return unsigned(size + 1)


def produced(  # noqa: C901 - flat, as it runs for many requests
    chunk: bytearray, at: int, end: int, version: int
) -> Produced | None:
    """Return what a request has whose client id begins at `at`; None: read it otherwise."""
    try:
        client = _short(chunk, at)[0]
        if client > LONGEST_CLIENT:
            return None
        at += 2 + (client if client > 0 else 0)
        transaction = chunk[at + 1]
        if chunk[at] or transaction:  # tagged fields, or a transaction
            return None
        acks = _short(chunk, at + 2)[0]
        count = chunk[at + 8] - 1
        if count > _MOST:
            return None
        at += 9
        topics: list[Portion] = []
        while count > 0:
            count -= 1
            topic, at = _topic(chunk, at, version)
            partitions = chunk[at] - 1
            at += 1
            if not 0 <= partitions < 127:
                return None
            total = told = 0
            while partitions > 0:
                partitions -= 1
                size, at = _compact(chunk, at + 4)
                until = at + size
                if until > end:
                    return None
                while at < until:
                    length, format, messages = _batch(chunk, at)
                    if format != FORMAT or messages < 0 or length < HEAD - AFTER_LENGTH:
                        return None
                    told += messages
                    at += length + AFTER_LENGTH
                if at != until or chunk[at]:
                    return None
                at += 1
                total += size
            if chunk[at]:
                return None
            at += 1
            topics.append(Portion(topic, total, told))
        return Produced(acks, topics) if at + 1 == end and not chunk[at] and not count else None
    except (IndexError, struct.error):
        return None


class Wanted(NamedTuple):
    """What a request of Fetch names. `begin`: where the number of its topics stands. `partitions`:
    where each partition stands."""

    begin: int
    topics: list[bytes]
    partitions: list[int]


def session_asked(chunk: bytearray, wanted: Wanted) -> int:
    """Return the fetch session that a request names. It stands before the session's epoch."""
    found: int = _int(chunk, wanted.begin - 8)[0]
    return found


def session_given(chunk: bytearray, at: int) -> int:
    """Return the fetch session of a response whose head ends at `at`, which `fetched` or `head` has
    read."""
    found: int = _int(chunk, at + 7)[0]
    return found


WANTED = 32
"""Bytes of the numbers of a partition in a request of Fetch."""


def fetches(  # noqa: C901 - flat, as it runs for many requests
    chunk: bytearray, at: int, end: int, version: int
) -> Wanted | None:
    """Return what a request of Fetch names whose client id begins at `at`; None: read it
    otherwise."""
    try:
        client = _short(chunk, at)[0]
        if client > LONGEST_CLIENT:
            return None
        at += 2 + (client if client > 0 else 0)
        if chunk[at]:  # tagged fields of the head
            return None
        if version < _WITHOUT_REPLICA:
            if chunk[at + 1] < 128:  # the id of a replica, which is not negative
                return None
            at += 4
        at += 22
        begin = at
        count = chunk[at] - 1
        if count > _MOST:
            return None
        at += 1
        topics: list[bytes] = []
        places: list[int] = []
        while count > 0:
            count -= 1
            topic, at = _topic(chunk, at, version)
            topics.append(topic)
            partitions = chunk[at] - 1
            at += 1
            if not 0 <= partitions < 127:
                return None
            while partitions > 0:
                partitions -= 1
                places.append(at)
                if chunk[at + WANTED]:  # tagged fields
                    return None
                at += WANTED + 1
            if chunk[at]:
                return None
            at += 1
        # None are forgotten, the client's rack, and no tagged fields.
        rack = chunk[at + 1]
        if count or chunk[at] != 1 or rack > 127:
            return None
        at += 2 + (rack - 1 if rack else 0)
        if at + 1 != end or chunk[at]:
            return None
        return Wanted(begin, topics, places)
    except (IndexError, struct.error):
        return None


_WITHOUT_REPLICA = 15
"""The first version of Fetch in which a client does not say that it is no replica."""


def accepted(chunk: bytearray, at: int, end: int, version: int) -> bool:
    """Return whether a response to Produce, whose head ends at `at`, says that all went well and
    nothing else, so that nobody has to look at it. False: look at it."""
    try:
        if chunk[at]:  # tagged fields of the head
            return False
        count = chunk[at + 1] - 1
        if count > _MOST:
            return False
        at += 2
        while count > 0:
            count -= 1
            size = ID if version >= BY_ID else chunk[at]
            at += size
            partitions = chunk[at] - 1
            at += 1
            if size > 127 or partitions > 126:
                return False
            while partitions > 0:
                partitions -= 1
                # Its index; no error; three numbers; no errors of records, no text, no tags.
                if chunk[at + 4] or chunk[at + 5] or chunk[at + 30 : at + 33] != _FINE:
                    return False
                at += 33
            if partitions or chunk[at]:
                return False
            at += 1
        # The time for which the client is held, and no tags.
        return not count and at + 5 == end and not chunk[at + 4]
    except IndexError:
        return False


_FINE = b"\x01\x00\x00"


APPENDED = 4 + 2 + 8
"""Bytes of what an accepted answer says first of a partition: its index, no error, an offset."""


def only_partition(chunk: bytearray, at: int, version: int) -> int | None:
    """Return where the partition of an accepted answer to Produce stands, whose head ends at `at`;
    None: it has several."""
    if chunk[at + 1] != _ONE:
        return None
    at += 2 + (ID if version >= BY_ID else chunk[at + 2])
    return at + 1 if chunk[at] == _ONE else None


def fetched(chunk: bytearray, at: int, end: int, version: int) -> list[Portion] | None:
    """Return what a response to Fetch has, whose head ends at `at`; None: read it otherwise."""
    try:
        if chunk[at] or chunk[at + 5] or chunk[at + 6]:  # tagged fields of the head; an error
            return None
        count = chunk[at + 11] - 1  # behind the time of throttling, the error and the session
        if count > _MOST:
            return None
        at += 12
        topics: list[Portion] = []
        while count > 0:
            count -= 1
            topic, at = _topic(chunk, at, version)
            partitions = chunk[at] - 1
            at += 1
            if not 0 <= partitions < 127:
                return None
            total = told = 0
            ends: dict[int, int] = {}
            while partitions > 0:
                partitions -= 1
                index, offset = _end(chunk, at)
                ends[index] = offset
                # An error, or transactions that were aborted.
                if chunk[at + 4] or chunk[at + 5] or chunk[at + 30] > 1:
                    return None
                size, at = _compact(chunk, at + 35)
                until = at + size
                if until > end:
                    return None
                messages = messages_in(chunk, at, until)
                if messages < 0:
                    return None
                told += messages
                if chunk[until]:
                    return None
                at = until + 1
                total += size
            if chunk[at]:
                return None
            at += 1
            topics.append(Portion(topic, total, told, ends))
        return topics if at + 1 == end and not chunk[at] and not count else None
    except (IndexError, struct.error):
        return None


def messages_in(chunk: bytearray, at: int, until: int) -> int:
    """Return how many messages the batches between two offsets have; negative: read them otherwise.
    The broker may have cut the last one, which is not counted."""
    told = 0
    while until - at >= HEAD:
        length, format, messages = _batch(chunk, at)
        if format != FORMAT or messages < 0 or length < HEAD - AFTER_LENGTH:
            return -1
        at += length + AFTER_LENGTH
        if at > until:
            return told
        told += messages
    return -1 if until - at >= SHORT else told  # enough of a batch to say what it is


class Head(NamedTuple):
    """What stands before the batches of a response to Fetch with one partition, in `size` bytes.
    `batches`: bytes of these. `ends`: where the partition ends, by its index."""

    size: int
    topic: bytes
    batches: int
    ends: dict[int, int]


TAIL = 3
"""Bytes behind the batches of a frame with one topic and one partition: no tagged fields, three
times. If others stood there, nobody could read the frame."""


def head(chunk: bytearray, at: int, end: int, until: int, version: int) -> Head | None:
    """Return what a response to Fetch begins with whose head ends at `at`, and which ends at
    `until`; None: it has not all come, or the response has several partitions, or another form."""
    began = at
    try:
        if chunk[at] or chunk[at + 5] or chunk[at + 6] or chunk[at + 11] != _ONE:
            return None
        topic, at = _topic(chunk, at + 12, version)
        if chunk[at] != _ONE or chunk[at + 5] or chunk[at + 6]:
            return None
        if chunk[at + 31] > 1:  # transactions that were aborted
            return None
        index, offset = _end(chunk, at + 1)
        size, at = _compact(chunk, at + 36)
        if at > end or at + size + TAIL != until:
            return None
        return Head(at - began, topic, size, {index: offset})
    except (IndexError, struct.error):
        return None


def _topic(chunk: bytearray, at: int, version: int) -> tuple[bytes, int]:
    """Return a topic, by its name or its id, and where it ends. Raises `IndexError` for a name that
    is null, or whose length takes more than a byte."""
    if version >= BY_ID:
        return bytes(chunk[at : at + ID]), at + ID
    size = chunk[at]
    if not 0 < size < 128:
        raise IndexError
    return bytes(chunk[at + 1 : at + size]), at + size


def _compact(chunk: bytearray, at: int) -> tuple[int, int]:
    """Return a compact length without its one, and where it ends; a null is 0."""
    byte = chunk[at]
    if byte < 128:
        return (byte - 1 if byte else 0), at + 1
    size = byte & 127
    byte = chunk[at + 1]
    size |= (byte & 127) << 7
    if 0 < byte < 128:
        return size - 1, at + 2
    byte = chunk[at + 2] if byte else 0
    size |= (byte & 127) << 14
    if 0 < byte < 128:
        return size - 1, at + 3
    byte = chunk[at + 3] if byte else 0
    size |= (byte & 127) << 21
    if not 0 < byte < 128:
        raise IndexError  # 256 MB, which a chunk does not hold; or a byte more than it needs
    return size - 1, at + 4
