"""All brokers together: the topics, the owner of each, and the memory bound."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING
from zlib import crc32

from gateway.lab.sandbox.names import FullTopicName
from gateway.lab.sandbox.schemas import Schemas
from gateway.lab.sandbox.topic import Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.lab.sandbox.log import Position
    from gateway.lab.sandbox.record import Record

MOST_TOPICS = 10_000
"""A topic costs some kilobytes, and is kept until the sandbox ends."""

MEMORY = 256 * 1024 * 1024
"""Most bytes of entries: a minute of the demonstration's traffic, on the smallest machine."""


class SandboxCluster:
    """The topics of a sandbox, and the broker that owns each topic. `urls`: `pulsar://host:port` of
    each broker, in the order of their numbers.

    `memory`: most bytes of all entries. Beyond this bound the oldest entry is evicted, acknowledged
    or not.
    """

    def __init__(self, urls: Sequence[str], memory: int = MEMORY) -> None:
        self.urls = tuple(urls)
        self.topics: dict[FullTopicName, Topic] = {}
        self.partitions: dict[FullTopicName, int] = {}
        self.schemas = Schemas()
        self.used = 0
        self._memory = memory
        self._ages: deque[Topic] = deque()
        self._ledgers = count(1)
        self._names = count(0)

    # -- topics ----------------------------------------------------------------------------------

    def owner(self, name: FullTopicName) -> int:
        """Return the number of the broker that owns a topic; if the topic does not exist, of the
        broker that would own it."""
        topic = self.topics.get(name)
        if topic is not None:
            return topic.owner
        return (crc32(str(name.base).encode()) + max(name.partition, 0)) % len(self.urls)

    def topic(self, name: FullTopicName) -> Topic | None:
        """Return a topic; create it if it does not exist. Return None if there are too many
        topics."""
        topic = self.topics.get(name)
        if topic is None and len(self.topics) < MOST_TOPICS:
            topic = self.topics[name] = Topic(name, self.owner(name), next(self._ledgers))
        return topic

    def has(self, name: FullTopicName) -> bool:
        return name in self.topics or name in self.partitions

    def create(self, name: FullTopicName, partitions: int) -> str | None:
        """Create a topic with this number of partitions; 0: the topic is not partitioned. Return a
        text that says why the topic cannot be created, or None."""
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

    def names_in(self, namespace: str) -> list[FullTopicName]:
        """Return the names of all topics in a namespace (`tenant/namespace`). Each partition has a
        name of its own."""
        return [name for name in self.topics if name.namespace == namespace]

    def producer_name(self) -> str:
        """Return a new name, for a producer whose client chose none."""
        return f"sandbox-{next(self._names)}"

    # -- entries ---------------------------------------------------------------------------------

    def publish(self, topic: Topic, record: Record) -> Position:
        """Append an entry to a topic, deliver it, and return its position. If entries then exceed
        the memory bound, evict the oldest ones."""
        position = topic.publish(record)
        self.used += record.cost
        self._ages.append(topic)
        while self.used > self._memory and len(self._ages) > 1:
            self.used -= self._ages.popleft().evict_oldest()
        return position

    # -- moves -----------------------------------------------------------------------------------

    def move(self, name: FullTopicName, *, assigned: bool) -> dict[FullTopicName, str]:
        """Move a topic, or each of its partitions, to the broker with the next number. Return the
        URL of the new owner, by topic.

        `assigned`: the commands that close producers and consumers state the new owner, so that
        clients need no lookup.
        """
        parts = [name.part(number) for number in range(self.partitions.get(name, 0))] or [name]
        return {part: self._move(self.topics[part], assigned=assigned) for part in parts}

    def _move(self, topic: Topic, *, assigned: bool) -> str:
        owner = (topic.owner + 1) % len(self.urls)
        url = self.urls[owner]
        topic.move(owner, next(self._ledgers), url if assigned else None)
        return url
