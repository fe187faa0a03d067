"""Notes where partitions end and how far groups are, as replies of brokers say it.

Brokers count in bytes of an index, which has 28 for each message, and which all partitions share
that are in one store. So what is beyond a group's offset has messages of the other partitions too:
nothing beyond it means that the group has all, and otherwise it has at most so many to come.

A partition has a number for metrics: a million times its broker's id, and what the broker calls it.
So broker 2's partition 3 is 2000003.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gateway.wire.services import Services
from gateway.wire.subject import TopicName
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.names import read_topic

INDEX_ENTRY = 28
"""Bytes of a broker's index for each message."""

_OF_BROKER = 1_000_000

MOST_ENDS = 200_000
"""Partitions of one topic whose ends are kept, 20 MB."""

TOLD_BY = frozenset({methods.REGISTER_PARTITION, methods.GET_MESSAGES, methods.COMMIT})
"""Methods whose replies tell offsets."""


class Partition(NamedTuple):
    """A partition that a group asks about. `number`: for metrics."""

    group: str
    topic: TopicName
    number: int


def partition_of(message: Any, node: int) -> Partition | None:
    """Return the partition of a request in `TOLD_BY` to the broker with the id `node`; None: no
    topic has its name, no partition its number, or the consumer leaves it."""
    topic = read_topic(message.topicName)
    if topic is None or not 0 <= message.partitionId < _OF_BROKER:
        return None
    if getattr(message, "opType", None) == methods.UNREGISTER:
        return None
    return Partition(message.groupName, topic, node * _OF_BROKER + message.partitionId)


def note(services: Services, partition: Partition, offset: int | None, end: int) -> None:
    """Note what a reply says of a partition. `offset`: where the group is, in bytes of the index;
    None: it does not say so. `end`: where the partition ends; 0: it does not say so."""
    ends = services.ends(partition.topic)
    if end > 0 and (partition.number in ends or len(ends) < MOST_ENDS):
        ends[partition.number] = end // INDEX_ENTRY
    if offset is not None and offset >= 0:
        services.committed(
            partition.group, partition.topic, partition.number, offset // INDEX_ENTRY
        )
