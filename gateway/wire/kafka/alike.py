"""What successive frames of one kind have in common on a connection.

A producer sends to the same partition again and again, a consumer asks for the same partition, and
the responses to both look alike too: only ids, offsets and batches differ. So a scanner learns the
constant parts of one frame (`learn_…`), compares them with those of the next frame, and reads the
numbers between them by one unpack. `quick` and `traffic` read all other frames.

Only frames with one partition are learned. (A request of Fetch may also name none: most requests of
a fetch session do.) Connections share what they learn, because many of them have the same frames.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from gateway.wire.kafka import quick
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.frames import SIZE
from gateway.wire.kafka.scanning import ANSWER, REQUEST

FORMS = 1024
"""Forms of each kind that are kept for all connections: one for each client id, topic and version.
A form takes 500 bytes, and 2 KB with the longest names."""

_INDEX = 4
"""Bytes of a partition's index."""

_MOST_DIGITS = 4
"""Bytes of the length of a batch of up to 256 MB."""


def kind(key: int, version: int) -> int:
    """Return an API and a version as one number, as they stand in a head."""
    return key << 16 | version


# -- Produce ---------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """Where the numbers of a request of Produce stand that has one batch.

    `unpack` reads them at the offset of the frame's size: that size, the API and the version as one
    number, the correlation id, the lead, the length before the batch, and of the batch its length,
    format and number of messages. `size`: bytes that it reads. `around`: bytes behind the frame's
    size that are not of the batch. `digits`: bytes of the length before the batch.
    """

    unpack: Callable[[bytearray, int], tuple[int, int, int, bytes, bytes, int, int, int]]
    size: int
    around: int
    digits: int


@lru_cache(FORMS)
def _layout(lead: int, digits: int) -> Layout:
    found = struct.Struct(f">iIi{lead}s{_INDEX}x{digits}s8xi4xb40xi")
    around = REQUEST.size - SIZE.size + lead + _INDEX + digits + quick.TAIL
    return Layout(found.unpack_from, found.size, around, digits)


class Producing(NamedTuple):
    """The constant parts of a producer's requests. `lead`: the bytes from the client id to the
    partition. `kind`: API and version as one number. `layout`: where the numbers stand."""

    lead: bytes
    kind: int
    version: int
    acks: int
    topic: bytes
    layout: Layout


_producing = lru_cache(FORMS)(Producing)

NOT_PRODUCING = Producing(b"", -1, -1, 0, b"", _layout(0, 1))
"""Stands in until a request has been learned; no request matches it."""


def learn_producing(
    last: Producing, chunk: bytearray, pos: int, end: int, version: int
) -> Producing | None:
    """Return the constant parts of the request at `pos`, mostly `last`. Return None if the request
    has several partitions, or is otherwise unusual."""
    at = pos + REQUEST.size
    if version == last.version and chunk.startswith(last.lead, at, end):
        digits = _digits(chunk, at + len(last.lead) + _INDEX, end)
        if digits and digits != last.layout.digits:
            return _producing(*last[:-1], _layout(len(last.lead), digits))
        return last
    found = quick.lead(chunk, at, end, version)
    digits = 0 if found is None else _digits(chunk, at + found.size + _INDEX, end)
    if found is None or not digits:
        return None
    lead = bytes(chunk[at : at + found.size])
    layout = _layout(len(lead), digits)
    return _producing(lead, kind(PRODUCE, version), version, found.acks, found.topic, layout)


def _digits(chunk: bytearray, at: int, end: int) -> int:
    """Return how many bytes the compact length at `at` has; 0: it is too long, or has not come."""
    for number, byte in enumerate(chunk[at : min(end, at + _MOST_DIGITS)], start=1):
        if byte < 128:
            return number
    return 0


_Accepting = Callable[[bytearray, int], tuple[int, int, bytes, int, int, int, bytes]]


@lru_cache(FORMS)
def _accepting(lead: int, rest: int) -> _Accepting:
    return struct.Struct(f">ii{lead}sihq{rest}s").unpack_from


class Accepted(NamedTuple):
    """The constant parts of accepted answers to Produce. `size`: bytes of a response. `lead`: the
    bytes between the correlation id and the partition. `rest`: the bytes behind the offset.
    `version`: of the request. `unpack`: reads size, correlation id, lead, partition, error, offset
    and rest."""

    size: int
    lead: bytes
    rest: bytes
    version: int
    unpack: _Accepting


_accepted = lru_cache(FORMS)(Accepted)

NOT_ACCEPTED = Accepted(0, b"", b"", -1, _accepting(0, 0))
"""Stands in until a response has been learned; no response matches it."""


def learn_accepted(chunk: bytearray, pos: int, size: int, version: int) -> Accepted | None:
    """Return the constant parts of the accepted answer of `size` bytes at `pos`. Return None if the
    answer has several partitions."""
    at = pos + ANSWER.size
    place = quick.only_partition(chunk, at, version)
    if place is None:
        return None
    lead = bytes(chunk[at:place])
    rest = bytes(chunk[place + quick.APPENDED : pos + size])
    return _accepted(size, lead, rest, version, _accepting(len(lead), len(rest)))


# -- Fetch -----------------------------------------------------------------------------------------

_EPOCH = 4
"""Bytes of a fetch session's epoch, which grows with each request."""


class Asking(NamedTuple):
    """The constant parts of a consumer's requests.

    `size`: bytes behind the frame's size. `kind`: API and version as one number. `lead`: the bytes
    from the client id to the fetch session. `topic`: the bytes from the number of topics to the
    partition. `rest`: the bytes behind the partition's numbers. `name`: the topic's name or id;
    empty if the request names no topic.
    `unpack`: reads size, kind, correlation id, lead, topic and rest.
    """

    size: int
    kind: int
    version: int
    lead: bytes
    topic: bytes
    rest: bytes
    name: bytes
    unpack: Callable[[bytearray, int], tuple[int, int, int, bytes, bytes, bytes]]


@lru_cache(FORMS)
def _asking(lead: int, topic: int, numbers: int, rest: int) -> struct.Struct:
    return struct.Struct(f">iIi{lead}s{_EPOCH}x{topic}s{numbers}x{rest}s")


_asked = lru_cache(FORMS)(Asking)

NOT_ASKING = Asking(-1, 0, 0, b"", b"", b"", b"", _asking(0, 0, 0, 0).unpack_from)
"""Stands in until a request has been learned; no request matches it."""


def learn_asking(chunk: bytearray, pos: int, version: int, wanted: quick.Wanted) -> Asking:
    """Return the constant parts of the whole request at `pos`, of which `quick` has read `wanted`.
    Return `NOT_ASKING` if the request names several partitions."""
    (size,) = SIZE.unpack_from(chunk, pos)
    if len(wanted.partitions) > 1 or len(wanted.topics) != len(wanted.partitions):
        return NOT_ASKING
    end, begin, name, numbers = pos + SIZE.size + size, wanted.begin, b"", 0
    partition = begin + 1
    if wanted.topics:
        (name,), (partition,), numbers = wanted.topics, wanted.partitions, quick.WANTED
    lead = bytes(chunk[pos + REQUEST.size : begin - _EPOCH])
    topic, rest = bytes(chunk[begin:partition]), bytes(chunk[partition + numbers : end])
    unpack = _asking(len(lead), len(topic), numbers, len(rest)).unpack_from
    return _asked(size, kind(FETCH, version), version, lead, topic, rest, name, unpack)


class Giving(NamedTuple):
    """The constant parts of responses to a consumer.

    `head`: bytes up to the end of the first batch's head. `around`: bytes behind the frame's size
    that belong to no batch. `lead`: the bytes from the correlation id to the partition. `middle`:
    the bytes between the partition's offsets and the length of its batches. `topic`: the topic's
    name or id. `unpack`:
    reads size, correlation id, lead, the partition's index, its error, where it ends, the middle,
    the length before the batches, and of the first batch its length, format and number of messages.
    """

    head: int
    around: int
    version: int
    lead: bytes
    middle: bytes
    topic: bytes
    unpack: Callable[
        [bytearray, int], tuple[int, int, bytes, int, int, int, bytes, bytes, int, int, int]
    ]

    @property
    def digits(self) -> int:
        """Return the bytes of the length before the batches."""
        return self.around - 4 - len(self.lead) - _INDEX_TO_BATCHES - quick.TAIL


_INDEX_TO_BATCHES = 4 + 2 + 3 * 8 + 1 + 4
"""Bytes of a partition before the length of its batches: its index, an error, three offsets, no
transactions, and the replica to read from."""


@lru_cache(FORMS)
def _giving(lead: int, digits: int) -> struct.Struct:
    return struct.Struct(f">ii{lead}sihq16x5s{digits}s8xi4xb40xi")


_given = lru_cache(FORMS)(Giving)

NOT_GIVING = Giving(1 << 62, 0, 0, b"", b"", b"", _giving(0, 0).unpack_from)
"""Stands in until a response has been learned; no response matches it."""


def learn_giving(chunk: bytearray, at: int, version: int, head: quick.Head) -> Giving:
    """Return the constant parts of the response whose head ends at `at`. `head`: its beginning, as
    `quick` has read it."""
    digits = len(quick.length_of(head.batches))
    lead = head.size - digits - _INDEX_TO_BATCHES
    middle = at + lead + _INDEX_TO_BATCHES - 5
    form = _giving(lead, digits)
    around = 4 + head.size + quick.TAIL
    return _given(
        form.size,
        around,
        version,
        bytes(chunk[at : at + lead]),
        bytes(chunk[middle : middle + 5]),
        head.topic,
        form.unpack_from,
    )
