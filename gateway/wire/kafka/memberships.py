"""Reads the topics in what members of a consumer group send each other, and removes some of them.

A member's subscription and assignment are blocks of bytes to brokers, written by clients. Groups of
other types (`connect`) write other things, and name no topics.

Brokers with groups of the new protocol read the subscription of a classic member, and assign its
topics themselves.

Source: ConsumerProtocolSubscription and ConsumerProtocolAssignment of Apache Kafka. Both begin with
a version and a list of topics; an assignment has a list of partitions behind each topic. Behind its
topics a subscription has data of the member's own, and from version 1 on the partitions that the
member has, as in an assignment.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gateway.wire.slices import UNITS, Slices

CONSUMER = b"consumer"
"""The protocol type of groups of consumers."""

_VERSION = struct.Struct(">h")
_LENGTH = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_PARTITION = 4
_WITH_OWNED = 1
"""The first version of subscriptions with the partitions that the member has."""

Topics = Iterator[bytes | None]


def topics_of(data: bytes, *, assigned: bool) -> Topics:
    """Yield the topics in a member's subscription, or in its assignment (`assigned`). Yields None,
    and ends, if the data cannot be read."""
    try:
        for element in _elements(data, _VERSION.size, assigned=assigned) if data else ():
            yield element.topic
    except struct.error:
        yield None


def without(data: bytes, hides: Callable[[bytes], bool]) -> Slices[bytes | None]:
    """Return a member's subscription without the topics that `hides` says to hide, `data` itself if
    it has none; None if it cannot be read."""
    try:
        return (yield from _without(data, hides))
    except struct.error:
        return None


def _without(data: bytes, hides: Callable[[bytes], bool]) -> Slices[bytes]:
    (version,) = _VERSION.unpack_from(data)
    kept = yield from _kept(data, _VERSION.size, hides, assigned=False)
    size = _number(_COUNT, data, kept.end, least=-1)
    owned = kept.end + _COUNT.size + max(0, size)
    parts = [data[: _VERSION.size], kept.data, data[kept.end : owned]]
    end = owned
    if version >= _WITH_OWNED and owned < len(data):  # some clients leave the partitions out
        rest = yield from _kept(data, owned, hides, assigned=True)
        parts.append(rest.data)
        end = rest.end
    _check(data, end)
    return b"".join([*parts, data[end:]])


class _Element(NamedTuple):
    """An element of a list of topics: its topic, and the bytes `data[start:end]`."""

    topic: bytes
    start: int
    end: int


class _List(NamedTuple):
    """A list of topics, and the offset behind the one that it was made of."""

    data: bytes
    end: int


def _kept(data: bytes, at: int, hides: Callable[[bytes], bool], *, assigned: bool) -> Slices[_List]:
    """Return a list of topics without the hidden ones."""
    kept: list[bytes] = []
    end = at + _COUNT.size
    for number, element in enumerate(_elements(data, at, assigned=assigned), 1):
        if not hides(element.topic):
            kept.append(data[element.start : element.end])
        end = element.end
        if number % UNITS == 0:
            yield
    return _List(_COUNT.pack(len(kept)) + b"".join(kept), end)


def _elements(data: bytes, at: int, *, assigned: bool) -> Iterator[_Element]:
    """Yield the elements of a list of topics. Raises `struct.error` if it cannot be read."""
    count = _number(_COUNT, data, at)
    at += _COUNT.size
    for _ in range(count):
        start = at
        length = _number(_LENGTH, data, at)
        at += _LENGTH.size + length
        topic = data[at - length : at]
        if assigned:
            at += _COUNT.size + _PARTITION * _number(_COUNT, data, at)
        _check(data, at)
        yield _Element(topic, start, at)


def _number(kind: struct.Struct, data: bytes, at: int, least: int = 0) -> int:
    """Return the length or count at an offset. Raises `struct.error` if it is less than `least`, as
    brokers take no null but for the member's own data."""
    number: int = kind.unpack_from(data, at)[0]
    if number < least:
        raise struct.error("a length that is too small")
    return number


def _check(data: bytes, end: int) -> None:
    """Raise `struct.error` if what was read would end behind the data."""
    if end > len(data):
        raise struct.error("the data is cut")
