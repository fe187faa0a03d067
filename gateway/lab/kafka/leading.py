"""Finds the partition that a request names, and checks that this broker leads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.lab.kafka.cluster import Partition, Topic
from gateway.lab.kafka.codes import Error

if TYPE_CHECKING:
    from gateway.lab.kafka.cluster import KafkaCluster
    from gateway.lab.kafka.session import KafkaSession
    from gateway.wire.kafka.codec import Struct

_ANY = -1
"""The epoch of clients that do not know any."""


def topic_of(cluster: KafkaCluster, struct: Struct, name: str = "Name") -> Topic | Error:
    """Return the topic that a part of a request names, or an error. In versions with topic ids
    (KIP-516) the topic is named by its id."""
    if struct.get(name) is not None:
        return cluster.topics.get(struct[name]) or Error.UNKNOWN_TOPIC_OR_PARTITION
    return cluster.by_id(struct["TopicId"]) or Error.UNKNOWN_TOPIC_ID


def partition_of(topic: Topic | Error, number: int) -> Partition | Error:
    """Return the partition of a topic with this number; an error if the topic or the partition does
    not exist."""
    if isinstance(topic, Error):
        return topic
    if not 0 <= number < len(topic.partitions):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return topic.partitions[number]


def refusal(session: KafkaSession, partition: Partition, epoch: int = _ANY) -> Error | None:
    """Return an error if this broker does not lead a partition, or does not lead it in this epoch
    (KIP-320); otherwise None."""
    if partition.leader != session.node:
        return Error.NOT_LEADER_OR_FOLLOWER
    if epoch != _ANY and epoch < partition.epoch:
        return Error.FENCED_LEADER_EPOCH
    if epoch > partition.epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    return None


def led(
    session: KafkaSession, topic: Topic | Error, number: int, epoch: int = _ANY
) -> Partition | Error:
    """Return a topic's partition with this number if this broker leads it, otherwise an error."""
    partition = partition_of(topic, number)
    if isinstance(partition, Error):
        return partition
    return refusal(session, partition, epoch) or partition


def current(topic: Topic | Error, number: int) -> Struct:
    """Return the field of a response that states a partition's leader (KIP-951); empty if there is
    no such partition."""
    partition = partition_of(topic, number)
    if isinstance(partition, Error):
        return {}
    return {"CurrentLeader": {"LeaderId": partition.leader, "LeaderEpoch": partition.epoch}}
