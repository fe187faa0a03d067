"""All brokers together: which topics there are, who owns each, and how much all of it may take."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING
from zlib import crc32

from gateway.sandbox.names import TopicName
from gateway.sandbox.schemas import Schemas
from gateway.sandbox.topic import Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.sandbox.log import Position
    from gateway.sandbox.record import Record

MOST_TOPICS = 10_000
"""A topic costs some kilobytes, and is kept until the sandbox ends."""

MEMORY = 256 * 1024 * 1024
"""Bytes of entries that are kept: a minute of a demo's traffic, on the smallest machine."""


class Cluster:
    """`urls`: `pulsar://host:port` of each broker, whose number is its place in there.

    `memory`: bytes of entries that are kept. What is beyond is forgotten, the oldest first
    whatever topic it is of, acknowledged or not.
    """

    def __init__(self, urls: Sequence[str], memory: int = MEMORY) -> None:
        self.urls = tuple(urls)
        self.topics: dict[TopicName, Topic] = {}
        self.partitions: dict[TopicName, int] = {}
        self.schemas = Schemas()
        self.used = 0
        self._memory = memory
        self._ages: deque[Topic] = deque()
        self._ledgers = count(1)
        self._names = count(0)

    # -- topics ----------------------------------------------------------------------------------

    def owner(self, name: TopicName) -> int:
        """The number of the broker that has a topic, or would have it."""
        topic = self.topics.get(name)
        if topic is not None:
            return topic.owner
        return (crc32(str(name.base).encode()) + max(name.partition, 0)) % len(self.urls)

    def topic(self, name: TopicName) -> Topic | None:
        """A topic, made where there is none; None where there are too many."""
        found = self.topics.get(name)
        if found is None and len(self.topics) < MOST_TOPICS:
            found = self.topics[name] = Topic(name, self.owner(name), next(self._ledgers))
        return found

    def has(self, name: TopicName) -> bool:
        return name in self.topics or name in self.partitions

    def create(self, name: TopicName, partitions: int) -> str | None:
        """Create a topic, with 0 as one that has no partitions. Answers why not."""
        if self.has(name) and self.partitions.get(name, 0) != partitions:
            return f"{name} is there already, with {self.partitions.get(name, 0)} partitions"
        if name.partition >= 0:
            return f"{name} is the name of a partition"
        parts = [name.part(number) for number in range(partitions)] or [name]
        if len(self.topics) + len(parts) > MOST_TOPICS:
            return f"a sandbox has {MOST_TOPICS} topics at most"
        if partitions:
            self.partitions[name] = partitions
        for part in parts:
            self.topic(part)
        return None

    def names_in(self, namespace: str) -> list[TopicName]:
        """The topics of `tenant/namespace`, partitions one by one."""
        return [name for name in self.topics if name.namespace == namespace]

    def producer_name(self) -> str:
        """A name for a producer that has none."""
        return f"sandbox-{next(self._names)}"

    # -- entries ---------------------------------------------------------------------------------

    def publish(self, topic: Topic, record: Record) -> Position:
        """Keep an entry and deliver it; forget the oldest ones where there is no room."""
        position = topic.publish(record)
        self.used += record.cost
        self._ages.append(topic)
        while self.used > self._memory and len(self._ages) > 1:
            self.used -= self._ages.popleft().forget_oldest()
        return position

    # -- moves -----------------------------------------------------------------------------------

    def move(self, name: TopicName, *, assigned: bool) -> dict[TopicName, str]:
        """Give a topic (all its partitions, each) to the next broker; answers who has it now.

        `assigned`: clients are told who, and need not look it up.
        """
        found = [name.part(number) for number in range(self.partitions.get(name, 0))] or [name]
        return {part: self._move(self.topics[part], assigned=assigned) for part in found}

    def _move(self, topic: Topic, *, assigned: bool) -> str:
        owner = (topic.owner + 1) % len(self.urls)
        url = self.urls[owner]
        topic.move(owner, next(self._ledgers), url if assigned else None)
        return url
