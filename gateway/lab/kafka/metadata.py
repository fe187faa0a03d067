"""Handlers of requests for metadata: brokers, topics, leaders and coordinators.

Sources: KIP-516 (topic ids), KIP-700 (DescribeCluster), KIP-699 (several coordinators at once),
KIP-919 (endpoints of controllers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.lab.kafka.cluster import NOBODY, Topic
from gateway.lab.kafka.codes import NO_RIGHTS_TOLD, Error, Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.kafka.cluster import KafkaCluster, Partition
    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

_GROUP, _TRANSACTION = 0, 1
"""Kinds of coordinators."""

_BROKERS = 1
"""A kind of endpoint; all others are not clients'."""

_FIRST_WITH_NONE = 1
"""The first version of Metadata in which no topics can be asked for; before, an empty list is
all."""


async def metadata(session: KafkaSession, request: Request) -> Struct:
    """Return brokers and topics (Metadata). A missing topic is created if the client's request
    allows that."""
    cluster, wanted = session.cluster, request.body["Topics"]
    if wanted is None or (not wanted and request.version < _FIRST_WITH_NONE):
        topics = [_topic(cluster, topic) for topic in cluster.topics.values()]
    else:
        create = request.body.get("AllowAutoTopicCreation", True)
        topics = [_wanted(cluster, topic, create=create) for topic in wanted]
    return {
        "Brokers": [{"NodeId": id, **_address(cluster, id)} for id in sorted(cluster.up)],
        "ClusterId": cluster.id,
        "ControllerId": cluster.controller,
        "Topics": topics,
        "ClusterAuthorizedOperations": NO_RIGHTS_TOLD,
    }


def _wanted(cluster: KafkaCluster, wanted: Struct, *, create: bool) -> Struct:
    name, id = wanted["Name"], wanted.get("TopicId", bytes(16))
    topic: Topic | Error | None
    if name is None:
        topic = cluster.by_id(id) or Error.UNKNOWN_TOPIC_ID
    else:
        topic = cluster.topics.get(name)
        if topic is None:
            topic = cluster.create(name) if create else Error.UNKNOWN_TOPIC_OR_PARTITION
    if isinstance(topic, Error):
        rights = {"TopicAuthorizedOperations": NO_RIGHTS_TOLD}
        return {"ErrorCode": topic, "Name": name, "TopicId": id, **rights}
    return _topic(cluster, topic)


def _topic(cluster: KafkaCluster, topic: Topic) -> Struct:
    return {
        "Name": topic.name,
        "TopicId": topic.id,
        "Partitions": [_partition(cluster, *numbered) for numbered in enumerate(topic.partitions)],
        "TopicAuthorizedOperations": NO_RIGHTS_TOLD,
    }


def _partition(cluster: KafkaCluster, number: int, partition: Partition) -> Struct:
    followers = [id for id in cluster.nodes if id != partition.leader]
    leader = [partition.leader] if partition.leader != NOBODY else []
    return {
        "ErrorCode": Error.NONE if leader else Error.LEADER_NOT_AVAILABLE,
        "PartitionIndex": number,
        "LeaderId": partition.leader,
        "LeaderEpoch": partition.epoch,
        "ReplicaNodes": leader + followers,
        "IsrNodes": leader + [id for id in followers if id in cluster.up],
        "OfflineReplicas": [id for id in followers if id not in cluster.up],
    }


def _address(cluster: KafkaCluster, id: int) -> Struct:
    host, port = cluster.nodes[id].pair
    return {"Host": host, "Port": port}


def endpoints(cluster: KafkaCluster, ids: set[int]) -> list[Struct]:
    """Return the id and address of each of these brokers, for clients that may not know them
    (KIP-951)."""
    return [{"NodeId": id, **_address(cluster, id)} for id in sorted(ids & cluster.up)]


async def describe_cluster(session: KafkaSession, request: Request) -> Struct:
    """Return the brokers (DescribeCluster). A request for controllers is refused, because in the
    sandbox brokers do the controllers' work."""
    cluster = session.cluster
    kind = request.body.get("EndpointType", _BROKERS)
    response = {
        "EndpointType": kind,
        "ClusterId": cluster.id,
        "ControllerId": cluster.controller,
        "ClusterAuthorizedOperations": NO_RIGHTS_TOLD,
    }
    if kind != _BROKERS:
        why = "this is the endpoint of a broker"
        return {**response, "ErrorCode": Error.MISMATCHED_ENDPOINT_TYPE, "ErrorMessage": why}
    brokers = [{"BrokerId": id, **_address(cluster, id)} for id in sorted(cluster.up)]
    return {**response, "Brokers": brokers}


async def find_coordinator(session: KafkaSession, request: Request) -> Struct:
    """Return the coordinators of groups (FindCoordinator). Transactions have no coordinators
    here."""
    kind = request.body.get("KeyType", _GROUP)
    keys = request.body.get("CoordinatorKeys")
    if keys is None:
        return _coordinator(session.cluster, request.body["Key"], kind)
    coordinators = [{"Key": key, **_coordinator(session.cluster, key, kind)} for key in keys]
    return {"Coordinators": coordinators}


def _coordinator(cluster: KafkaCluster, key: str, kind: int) -> Struct:
    nobody = {"NodeId": NOBODY, "Port": NOBODY}
    if kind == _TRANSACTION:
        why = "the sandbox has no transactions"
        error = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return {**nobody, "ErrorCode": error, "ErrorMessage": why}
    if kind != _GROUP:
        why = "the sandbox has no coordinators of this kind"
        return {**nobody, "ErrorCode": Error.INVALID_REQUEST, "ErrorMessage": why}
    id = cluster.coordinator(key)
    if id == NOBODY:
        return {**nobody, "ErrorCode": Error.COORDINATOR_NOT_AVAILABLE}
    return {"NodeId": id, **_address(cluster, id)}


HANDLERS: Mapping[int, Handler] = {
    Key.METADATA: metadata,
    Key.DESCRIBE_CLUSTER: describe_cluster,
    Key.FIND_COORDINATOR: find_coordinator,
}
