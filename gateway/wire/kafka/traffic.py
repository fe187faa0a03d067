"""Reads requests of Produce and answers of Fetch while they pass: how much of which topic.

A topic is named by its name, or by an id from Produce 13 and Fetch 13 on (KIP-516), which Metadata
tells. Both are told as they came; partitions of one topic are told together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.records import messages
from gateway.wire.kafka.schema import api
from gateway.wire.kafka.stream import Reader, length, number, skip, skip_tags, text
from gateway.wire.kafka.topics import ID

BY_ID = {PRODUCE: 13, FETCH: 13}
"""The first version that names topics by their ids."""

MOST_TOPICS = 10_000
"""Topics of one frame. A broker leads some thousands of partitions."""


class Portion(NamedTuple):
    """What a frame has of one topic. `topic`: its name, or its id. `size`: bytes of batches."""

    topic: bytes
    size: int
    messages: int


@dataclass(slots=True)
class Traffic:
    """What a frame carries. `acks`: of a request, how many replicas must have it; 0: the broker
    does not answer."""

    acks: int = 0
    transaction: bytes | None = None
    portions: list[Portion] = field(default_factory=list)


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


def produced(version: int, traffic: Traffic) -> Reader:
    """Read the body of a Produce request."""
    form = _Form.of(PRODUCE, version)
    traffic.transaction = yield from text(form.text)
    traffic.acks = yield from number(2)
    yield from skip(4)  # how long the broker may take
    yield from _topics(form, traffic)


def fetched(version: int, traffic: Traffic) -> Reader:
    """Read the body of a Fetch answer."""
    yield from skip(4 + (6 if version >= 7 else 0))  # throttle, error, session
    yield from _topics(_Form.of(FETCH, version), traffic)


def _topics(form: _Form, traffic: Traffic) -> Reader:
    count = yield from length(form.array)
    if count > MOST_TOPICS:
        raise PeerError(f"{count} topics")
    for _ in range(count):
        by_id = form.version >= BY_ID[form.key]
        topic = (yield ID) if by_id else (yield from text(form.text))
        if topic is None:
            raise PeerError("a topic without a name")
        size = told = 0
        for _ in range((yield from length(form.array))):
            yield from _before_records(form)
            here = max(0, (yield from length(form.array)))
            told += yield from messages(here, whole=form.key == PRODUCE)
            size += here
            if form.has_tags:
                yield from skip_tags()
        if form.has_tags:
            yield from skip_tags()
        traffic.portions.append(Portion(topic, size, told))


def _before_records(form: _Form) -> Reader:
    """Skip what stands before the batches of a partition."""
    yield from skip(4)  # its index
    if form.key == PRODUCE:
        return
    yield from skip(2 + 8 + 8 + (8 if form.version >= 5 else 0))  # error, offsets
    aborted = yield from length(form.array)
    if form.has_tags:
        for _ in range(aborted):
            yield from skip(16)
            yield from skip_tags()
    else:
        yield from skip(16 * aborted)
    yield from skip(4 if form.version >= 11 else 0)  # the replica to read from
