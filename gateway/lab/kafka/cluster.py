"""All brokers together: which are up, the topics, who leads which partition, and memory.

Every partition is replicated on every broker, as clients see it: while one broker is up, each
partition has a leader. In truth there is one copy of it.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING
from zlib import crc32

import trio

from gateway.lab.kafka.batches import Batch
from gateway.lab.kafka.codes import Error
from gateway.lab.kafka.log import PartitionLog, cost
from gateway.wire.kafka.names import is_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.wire.address import Address

MOST_PARTITIONS = 10_000
"""Of all topics together: each costs some kilobytes until its topic is deleted."""

MEMORY = 256 * 1024 * 1024
"""Most bytes of batches: a minute of busy clients, on the smallest machine."""

PARTITIONS = 3
"""Partitions of a topic whose creator names no number."""

DEFAULT = -1
"""Stands for that number."""

NOBODY = -1
"""The leader of a partition while no broker is up."""


@dataclass(slots=True, eq=False)
class Partition:
    """One partition. `leader`: the node id of its leader. `epoch`: the leader's epoch; each change
    of the leader adds 1."""

    leader: int
    epoch: int = 0
    log: PartitionLog = field(default_factory=PartitionLog)


@dataclass(slots=True, eq=False)
class Topic:
    """One topic. `id`: 16 bytes. `configs`: the configuration that the client gave that created the
    topic."""

    name: str
    id: bytes
    partitions: list[Partition]
    configs: dict[str, str | None]


class KafkaCluster:
    """The brokers and topics of one sandbox. `nodes`: the address of each broker, by node id.
    `memory`: most bytes of all batches; beyond this bound the oldest batch is evicted.
    `partitions`: how many partitions a topic gets whose creator states no number.

    Tasks parked in `changed` are woken when a partition gets a batch or another leader.
    """

    def __init__(
        self, nodes: Mapping[int, Address], memory: int = MEMORY, partitions: int = PARTITIONS
    ) -> None:
        self.id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.nodes = dict(nodes)
        self.up = set(nodes)
        self.topics: dict[str, Topic] = {}
        self.used = 0
        self.changed = trio.lowlevel.ParkingLot()
        self.coordinators: dict[str, int] = {}
        self._ids: dict[bytes, Topic] = {}
        self._memory = memory
        self._partitions = partitions
        self._count = 0
        self._ages: deque[Partition] = deque()
        self._producers = count(1000)

    # -- brokers ---------------------------------------------------------------------------------

    @property
    def controller(self) -> int:
        """Return the node id that responses name as the controller's; `NOBODY` while no broker is
        up. In fact every broker does the controller's work."""
        return min(self.up, default=NOBODY)

    def coordinator(self, key: str) -> int:
        """Return the node id of the broker that coordinates the group `key`; `NOBODY` while no
        broker is up."""
        chosen = self.coordinators.get(key, NOBODY)
        return chosen if chosen in self.up else self._living(crc32(key.encode()))

    def stop(self, node: int) -> None:
        """Mark a broker as down. Other brokers become leaders of its partitions."""
        self.up.discard(node)
        self._elect(node)

    def start(self, node: int) -> None:
        """Mark a broker as up. If partitions have no leader, brokers that are up become their
        leaders. Other partitions keep their leaders until `move` is called."""
        self.up.add(node)
        self._elect(NOBODY)

    def _elect(self, gone: int) -> None:
        for topic in self.topics.values():
            for number, partition in enumerate(topic.partitions):
                if partition.leader == gone:
                    self._lead(partition, self._living(_place(topic.name, number)))

    def _living(self, place: int) -> int:
        """Return the node id of a broker that is up, at this place or the next after it."""
        ids = list(self.nodes)
        at = place % len(ids)
        return next((node for node in ids[at:] + ids[:at] if node in self.up), NOBODY)

    def _lead(self, partition: Partition, node: int) -> None:
        partition.leader = node
        partition.epoch += 1
        self.changed.unpark_all()

    # -- topics ----------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        partitions: int = DEFAULT,
        *,
        leaders: Sequence[int] = (),
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic | Error:
        """Create a topic and return it; return an error if the topic cannot be created. `leaders`:
        the node id of each partition's leader; empty: the cluster chooses the leaders."""
        partitions = self.partitions_or_default(partitions)
        refusal = self.refusal(name, partitions)
        if refusal is not None:
            return refusal
        topic = Topic(name, uuid.uuid4().bytes, [], dict(configs or {}))
        self.grow(topic, partitions, leaders)
        self.topics[name] = self._ids[topic.id] = topic
        return topic

    def partitions_or_default(self, partitions: int) -> int:
        """Return `partitions`, or the cluster's default number if `partitions` is `DEFAULT`."""
        return self._partitions if partitions == DEFAULT else partitions

    def refusal(self, name: str, partitions: int) -> Error | None:
        """Return the error with which the creation of a topic with this name and number of
        partitions is refused; None if the topic can be created."""
        if not is_name(name.encode()):
            return Error.INVALID_TOPIC_EXCEPTION
        if name in self.topics:
            return Error.TOPIC_ALREADY_EXISTS
        return None if self.has_room(partitions) else Error.INVALID_PARTITIONS

    def has_room(self, partitions: int) -> bool:
        """Return whether `partitions` more partitions can be added to the cluster; False if
        `partitions` is less than 1."""
        return 0 < partitions <= MOST_PARTITIONS - self._count

    def grow(self, topic: Topic, partitions: int, leaders: Sequence[int] = ()) -> None:
        """Add `partitions` more partitions to a topic. `leaders`: the node id of each new
        partition's leader; empty: the cluster chooses."""
        there = len(topic.partitions)
        for number in range(there, there + partitions):
            chosen = leaders[number - there] if leaders else NOBODY
            leader = chosen if chosen in self.up else self._living(_place(topic.name, number))
            topic.partitions.append(Partition(leader))
        self._count += partitions

    def delete(self, topic: Topic) -> None:
        """Delete a topic and all its batches."""
        del self.topics[topic.name], self._ids[topic.id]
        self._count -= len(topic.partitions)
        for partition in topic.partitions:
            self.used -= sum(map(cost, partition.log.batches))
            partition.log.batches.clear()
        self.changed.unpark_all()

    def by_id(self, id: bytes) -> Topic | None:
        return self._ids.get(id)

    # -- batches ---------------------------------------------------------------------------------

    def append(self, partition: Partition, batch: Batch) -> Batch | Error:
        """Append a batch to a partition. If batches then exceed the memory bound, evict the oldest
        ones. Return the batch with its offset, or the error for which it is refused; see
        `PartitionLog.append`."""
        end = partition.log.end
        placed = partition.log.append(batch, partition.epoch)
        if partition.log.end == end or isinstance(placed, Error):
            return placed
        self.used += cost(placed)
        self._ages.append(partition)
        while self.used > self._memory and len(self._ages) > 1:
            oldest = self._ages.popleft()
            if oldest.log.batches:  # none are left if the topic was deleted
                self.used -= oldest.log.evict_oldest()
        self.changed.unpark_all()
        return placed

    def producer(self) -> int:
        """Return an id for a new producer."""
        return next(self._producers)

    def move(self, topic: str, partition: int, node: int) -> None:
        """Make the broker `node` the leader of a partition. Raises `KeyError` if there is no such
        topic or the broker is down, `IndexError` if there is no such partition."""
        if node not in self.up:
            raise KeyError(node)
        self._lead(self.topics[topic].partitions[partition], node)


def _place(topic: str, partition: int) -> int:
    """Return the place of a partition's first leader: partitions are spread over the brokers."""
    return crc32(topic.encode()) + partition
