"""Notes the end offsets of partitions and the committed offsets of groups, as replies of brokers
state them.

A broker's offset counts bytes of an index that all partitions of one store share, and that has 28
bytes for each message. So the index beyond a group's offset has messages of other partitions too.
If nothing is beyond it, the group has read all messages of its partition. Otherwise the number of
messages beyond it is an upper bound of the messages that the group has not read.

In metrics, the number of a partition is a million times its broker's id, plus the partition's
number at this broker. So partition 3 of broker 2 is 2000003.
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
    """Return the partition in `message`, a request whose method is in `TOLD_BY`; None if the topic
    or the partition number is invalid, or if the consumer leaves the partition by this request.
    `node`: the id of the broker to which the request is sent."""
    topic = read_topic(message.topicName)
    if topic is None or not 0 <= message.partitionId < _OF_BROKER:
        return None
    if getattr(message, "opType", None) == methods.UNREGISTER:
        return None
    return Partition(message.groupName, topic, node * _OF_BROKER + message.partitionId)


def note(services: Services, partition: Partition, offset: int | None, end: int) -> None:
    """Report to `services` the offsets that a reply about a partition states. `offset`: the group's
    offset, in bytes of the index; None if not stated. `end`: the partition's end, in bytes of the
    index; 0 if not stated."""
    ends = services.ends(partition.topic)
    if end > 0 and (partition.number in ends or len(ends) < MOST_ENDS):
        ends[partition.number] = end // INDEX_ENTRY
    if offset is not None and offset >= 0:
        services.committed(
            partition.group, partition.topic, partition.number, offset // INDEX_ENTRY
        )
