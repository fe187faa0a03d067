"""Reads the topics in what members of a consumer group send each other.

A member's subscription and assignment are blocks of bytes to brokers, written by clients. Groups of
other types (`connect`) write other things, and name no topics.

Source: ConsumerProtocolSubscription and ConsumerProtocolAssignment of Apache Kafka. Both begin with
a version and a list of topics; an assignment has a list of partitions behind each topic.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

CONSUMER = b"consumer"
"""The protocol type of groups of consumers."""

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_PARTITION = 4

Topics = Iterator[bytes | None]


def topics_of(data: bytes, *, assigned: bool) -> Topics:
    """Yield the topics in a member's subscription, or in its assignment (`assigned`). Yields None,
    and ends, if the data cannot be read."""
    try:
        yield from _topics(data, assigned=assigned)
    except struct.error:
        yield None


def _topics(data: bytes, *, assigned: bool) -> Topics:
    if not data:
        return
    _, count = _HEAD.unpack_from(data)
    at = _HEAD.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length < 0 or length > len(data) - at:
            yield None
            return
        yield data[at : at + length]
        at += length
        if assigned:
            (partitions,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size + _PARTITION * max(0, partitions)
