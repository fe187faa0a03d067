"""Reads requests of Produce and answers of Fetch while they pass: how much of which topic.

A topic is named by its name, or by an id from Produce 13 and Fetch 13 on (KIP-516), which Metadata
tells. Both are told as they came; partitions of one topic are told together.

What has to be different for the other peer is written in place, so nothing of a frame is held:

- A topic that the client may not use gets another name of the same length, which no broker has; its
  answer gets the name back, and the error (`substitutes`). Its batches become zeros, both ways.
- The addresses of new leaders stand at the end of a response, in a tagged field (KIP-951), and the
  gateway's may be longer or shorter. So the field becomes one that no client knows, full of zeros.
  The client asks for metadata then, as it did before it could be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.records import Batches
from gateway.wire.kafka.schema import api
from gateway.wire.kafka.stream import (
    Blank,
    Read,
    Reader,
    Reading,
    compact,
    length,
    number,
    skip,
    skip_tags,
    text,
)
from gateway.wire.kafka.topics import ID

BY_ID = {PRODUCE: 13, FETCH: 13}
"""The first version that names topics by their ids."""

WITH_LEADERS = 16
"""The first version of Fetch whose response has addresses of leaders."""

LEADERS, NOBODYS = 0, 127
"""The number of their tagged field, and one that no field of Fetch has; both take one byte."""

MOST_TOPICS = 10_000
"""Topics of one frame. A broker leads some thousands of partitions."""


NO_ENDS: Mapping[int, int] = MappingProxyType({})


class Portion(NamedTuple):
    """What a frame has of one topic. `topic`: its name, or its id. `size`: bytes of batches.
    `ends` (of a response): where partitions end, by their index."""

    topic: bytes
    size: int
    messages: int
    ends: Mapping[int, int] = NO_ENDS


@dataclass(slots=True)
class Traffic:
    """What a frame carries. `acks` (of a request): replicas that must have it; with 0 the broker
    sends no response. `session` (of a response): the fetch session. `errors` (of a response): codes
    other than 0."""

    acks: int = 0
    session: int = 0
    portions: list[Portion] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)


class Original(NamedTuple):
    """A topic as its client names it, of which the client gets no messages, and the error that says
    why."""

    topic: bytes
    error: int


Judge = Callable[[bytes], bytes | None]
"""Returns what takes the place of a topic that the client may not use; None: it may."""

Note = Callable[[bytes], None]
"""Is told the transactional id of a request, before its topics are judged."""

Restore = Callable[[bytes], Original | None]
"""Returns what a response has in place of a topic; None: the client may have its messages."""


def _as_it_is(_told: bytes) -> None:
    return None


class _Form(NamedTuple):
    """The form of a body. `text`, `array`: bytes of the lengths before them; 0: compact ones."""

    key: int
    version: int
    text: int
    array: int

    @classmethod
    def of(cls, key: int, version: int) -> _Form:
        found = api(key)
        assert found is not None
        schema = found.request if key == PRODUCE else found.response
        return cls(key, version, *((0, 0) if version >= schema.flexible else (2, 4)))

    @property
    def has_tags(self) -> bool:
        return not self.array


def produced(
    version: int, traffic: Traffic, judge: Judge = _as_it_is, transacts: Note = _as_it_is
) -> Reader:
    """Read the body of a Produce request. What the client may not use is in no portion."""
    form = _Form.of(PRODUCE, version)
    transaction = yield from text(form.text)
    if transaction is not None:
        transacts(transaction)
    traffic.acks = yield from number(2)
    yield from skip(4)  # how long the broker may take
    for _ in range((yield from _count(form))):
        topic = yield from _topic(form)
        other = judge(topic)
        if other is not None:
            yield other
        portion = yield from _partitions(form, topic, None, traffic, passes=other is None)
        if other is None:
            traffic.portions.append(portion)


def fetched(version: int, traffic: Traffic, restore: Restore = _as_it_is) -> Reader:
    """Read the body of a Fetch answer."""
    form = _Form.of(FETCH, version)
    yield from skip(4)  # the time of throttling
    if version >= 7:
        yield from _error(traffic)
        traffic.session = yield from number(4)
    for _ in range((yield from _count(form))):
        topic = yield from _topic(form)
        original = restore(topic)
        if original is not None and original.topic != topic:
            yield original.topic
        passes = original is None
        portion = yield from _partitions(form, topic, original, traffic, passes=passes)
        if passes:
            traffic.portions.append(portion)
    if version >= WITH_LEADERS:
        yield from _without_leaders()


def one_partition(
    traffic: Traffic, topic: bytes, size: int, ends: Mapping[int, int] = NO_ENDS
) -> Reader:
    """Read the batches of a response to Fetch with one partition, from the first of `size` bytes
    on, and what `quick` knows to stand behind them."""
    batches = Batches(size, whole=False)
    yield batches
    traffic.portions.append(Portion(topic, size, batches.messages, ends))


def _count(form: _Form) -> Read:
    count = yield from length(form.array)
    if count > MOST_TOPICS:
        raise PeerError(f"{count} topics")
    return count


def _topic(form: _Form) -> Reading[bytes]:
    topic = (yield ID) if form.version >= BY_ID[form.key] else (yield from text(form.text))
    if topic is None:
        raise PeerError("a topic without a name")
    return topic


def _partitions(
    form: _Form, topic: bytes, original: Original | None, traffic: Traffic, *, passes: bool
) -> Reading[Portion]:
    """Read what a frame has of one topic. `passes`: its batches go on; otherwise they become
    zeros."""
    size = told = 0
    ends: dict[int, int] = {}
    for _ in range((yield from length(form.array))):
        index = yield from number(4)
        if form.key == FETCH:
            end = yield from _before_batches(form, original, traffic)
            if end is not None:
                ends[index] = end
        here = max(0, (yield from length(form.array)))
        if passes:
            batches = Batches(here, whole=form.key == PRODUCE)
            yield batches
            told += batches.messages
            size += here
        else:
            yield Blank(here)
        if form.has_tags:
            yield from skip_tags()
    if form.has_tags:
        yield from skip_tags()
    return Portion(topic, size, told, ends or NO_ENDS)


def _error(traffic: Traffic) -> Read:
    error = yield from number(2)
    if error:
        traffic.errors.append(error)
    return error


def _before_batches(
    form: _Form, original: Original | None, traffic: Traffic
) -> Reading[int | None]:
    """Read what stands between a partition's index and its batches; return where it ends, None if
    the broker does not say it."""
    if original is None:
        error = yield from _error(traffic)
    else:
        yield 2
        error = original.error
        yield error.to_bytes(2)
        traffic.errors.append(error)
    end = yield from number(8)
    yield from skip(8 + (8 if form.version >= 5 else 0))  # other offsets
    aborted = yield from length(form.array)
    if form.has_tags:
        for _ in range(aborted):
            yield from skip(16)
            yield from skip_tags()
    else:
        yield from skip(16 * aborted)
    yield from skip(4 if form.version >= 11 else 0)  # the replica to read from
    return None if error else end


def _without_leaders() -> Reader:
    """Read the tagged fields at the end of a response; nobody knows that of leaders afterwards."""
    for _ in range((yield from compact())):
        tag = yield from compact()
        if tag == LEADERS:
            yield bytes([NOBODYS])
        size = yield from compact()
        if tag == LEADERS:
            yield Blank(size)
        else:
            yield from skip(size)
