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
    """Return the topic that a struct names, or an error. Versions that have ids name it by its id
    (KIP-516)."""
    if struct.get(name) is not None:
        return cluster.topics.get(struct[name]) or Error.UNKNOWN_TOPIC_OR_PARTITION
    return cluster.by_id(struct["TopicId"]) or Error.UNKNOWN_TOPIC_ID


def partition_of(topic: Topic | Error, number: int) -> Partition | Error:
    """Return a partition of a topic, or the error of the one that does not exist."""
    if isinstance(topic, Error):
        return topic
    if not 0 <= number < len(topic.partitions):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return topic.partitions[number]


def refusal(session: KafkaSession, partition: Partition, epoch: int = _ANY) -> Error | None:
    """Return an error if this broker is not the partition's leader of an epoch (KIP-320), else
    None."""
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
    """Return a partition that this broker leads, or an error."""
    partition = partition_of(topic, number)
    if isinstance(partition, Error):
        return partition
    return refusal(session, partition, epoch) or partition


def current(topic: Topic | Error, number: int) -> Struct:
    """Return the field of a response that names the leader of a partition (KIP-951); empty if there
    is no such partition."""
    partition = partition_of(topic, number)
    if isinstance(partition, Error):
        return {}
    return {"CurrentLeader": {"LeaderId": partition.leader, "LeaderEpoch": partition.epoch}}
