"""Notes the ends of partitions and the offsets of groups, as replies of brokers state them.

Brokers count in bytes of an index with 28 bytes for each message, which all partitions of one store
share. So the part beyond a group's offset has messages of other partitions too: if it is empty, the
group has read all; otherwise it has at most so many messages to read.

A partition has a number for metrics: a million times its broker's id, plus the broker's number for
it. So broker 2's partition 3 is 2000003.
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
"""The most partitions of one topic whose ends are kept, 20 MB."""

TOLD_BY = frozenset({methods.REGISTER_PARTITION, methods.GET_MESSAGES, methods.COMMIT})
"""Methods whose replies state offsets."""


class Partition(NamedTuple):
    """A partition that a group reads. `number`: its number for metrics."""

    group: str
    topic: TopicName
    number: int


def partition_of(message: Any, node: int) -> Partition | None:
    """Return the partition of a request in `TOLD_BY` to the broker with the id `node`; None if its
    topic or its number is invalid, or the consumer leaves it."""
    topic = read_topic(message.topicName)
    if topic is None or not 0 <= message.partitionId < _OF_BROKER:
        return None
    if getattr(message, "opType", None) == methods.UNREGISTER:
        return None
    return Partition(message.groupName, topic, node * _OF_BROKER + message.partitionId)


def note(services: Services, partition: Partition, offset: int | None, end: int) -> None:
    """Note the offsets in a reply about a partition. `offset`: the group's, in bytes of the index;
    None if the reply does not state it. `end`: the partition's end, likewise; 0 if it is not
    stated."""
    ends = services.ends(partition.topic)
    if end > 0 and (partition.number in ends or len(ends) < MOST_ENDS):
        ends[partition.number] = end // INDEX_ENTRY
    if offset is not None and offset >= 0:
        services.committed(
            partition.group, partition.topic, partition.number, offset // INDEX_ENTRY
        )
