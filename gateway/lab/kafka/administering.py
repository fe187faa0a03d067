"""Handlers of administrators: topics, and what brokers and topics are set to.

Every broker does a controller's work. What a creator sets for a topic is kept and told, and nothing
follows from it.

Sources: KIP-4, KIP-195 (CreatePartitions), KIP-226 and KIP-569 (DescribeConfigs), KIP-516 (ids).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gateway.lab.kafka.cluster import Topic
from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.leading import topic_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.lab.kafka.cluster import KafkaCluster
    from gateway.lab.kafka.session import Handler, KafkaSession, Request
    from gateway.wire.kafka.codec import Struct

_DEFAULT = -1
"""Stands for a number of partitions or replicas that the cluster chooses."""

MOST_CONFIGS = 100
"""Of one topic; brokers know some forty."""

LONGEST_CONFIG = 4096
"""Characters of a name or a value."""

_TOPIC, _BROKER = 2, 4
"""Kinds of resources."""

_OF_TOPIC, _OF_BROKER = 1, 4
"""Where a value was set: for the topic, or in the broker's file."""

_STRING = 2
"""The type of a value."""


# -- topics ------------------------------------------------------------------------------------


async def create_topics(session: KafkaSession, request: Request) -> Struct:
    """Create topics. A name that comes twice is refused."""
    wanted = request.body["Topics"]
    names = Counter(it["Name"] for it in wanted)
    is_trial = request.body["validateOnly"]
    told = []
    for it in wanted:
        unique = names[it["Name"]] == 1
        created = _created(session.cluster, it, is_trial) if unique else Error.INVALID_REQUEST
        told.append(_told(it, created, len(session.cluster.nodes)))
    return {"Topics": told}


def _created(cluster: KafkaCluster, wanted: Struct, is_trial: bool) -> Topic | Error | int:  # noqa: FBT001
    """Return the topic; in a trial, the number of partitions that it would have."""
    leaders = _leaders(cluster, wanted["Assignments"], 0)
    if isinstance(leaders, Error):
        return leaders
    is_chosen = wanted["NumPartitions"] != _DEFAULT or wanted["ReplicationFactor"] != _DEFAULT
    if leaders and is_chosen:
        return Error.INVALID_REQUEST
    replicas = wanted["ReplicationFactor"]
    if replicas != _DEFAULT and not 1 <= replicas <= len(cluster.nodes):
        return Error.INVALID_REPLICATION_FACTOR
    configs = {it["Name"]: it["Value"] for it in wanted["Configs"]}
    longest = max((len(text or "") for pair in configs.items() for text in pair), default=0)
    if len(configs) > MOST_CONFIGS or longest > LONGEST_CONFIG:
        return Error.INVALID_REQUEST
    partitions = len(leaders) or cluster.partitions_or_default(wanted["NumPartitions"])
    if is_trial:
        return cluster.refusal(wanted["Name"], partitions) or partitions
    return cluster.create(wanted["Name"], partitions, leaders=leaders, configs=configs)


def _leaders(cluster: KafkaCluster, assignments: Sequence[Struct], first: int) -> list[int] | Error:
    """Return the leader of each partition from a first one on, which is its first replica."""
    numbers = [it.get("PartitionIndex", at) for at, it in enumerate(assignments, first)]
    by_number = dict(zip(numbers, assignments, strict=True))
    if sorted(by_number) != list(range(first, first + len(assignments))):
        return Error.INVALID_REPLICA_ASSIGNMENT
    if not all(
        it["BrokerIds"] and set(it["BrokerIds"]) <= set(cluster.nodes) for it in assignments
    ):
        return Error.INVALID_REPLICA_ASSIGNMENT
    return [by_number[it]["BrokerIds"][0] for it in sorted(by_number)]


def _told(wanted: Struct, created: Topic | Error | int, replicas: int) -> Struct:
    if isinstance(created, Error):
        told = {"Name": wanted["Name"], "ErrorCode": created, "ErrorMessage": _why(created)}
        return {**told, "NumPartitions": _DEFAULT, "ReplicationFactor": _DEFAULT}
    configs = [_setting(it["Name"], it["Value"], _OF_TOPIC) for it in wanted["Configs"]]
    told = {"Name": wanted["Name"], "ReplicationFactor": replicas}
    told["Configs"] = [
        {name: it[name] for name in ("Name", "Value", "ConfigSource")} for it in configs
    ]
    if isinstance(created, Topic):
        return {**told, "TopicId": created.id, "NumPartitions": len(created.partitions)}
    return {**told, "NumPartitions": created}


def _why(error: Error) -> str:
    return error.name.lower().replace("_", " ")


async def delete_topics(session: KafkaSession, request: Request) -> Struct:
    """Delete topics, by name or by id, with what groups have committed for them."""
    body = request.body
    wanted = body.get("Topics") or [{"Name": it} for it in body.get("TopicNames", ())]
    return {"Responses": [_deleted(session, it) for it in wanted]}


def _deleted(session: KafkaSession, wanted: Struct) -> Struct:
    found = topic_of(session.cluster, wanted)
    if isinstance(found, Error):
        told = {"Name": wanted["Name"], "TopicId": wanted.get("TopicId")}
        return {**told, "ErrorCode": found, "ErrorMessage": _why(found)}
    session.cluster.delete(found)
    session.groups.forget(found.name)
    return {"Name": found.name, "TopicId": found.id}


async def create_partitions(session: KafkaSession, request: Request) -> Struct:
    """Add partitions to topics."""
    is_trial = request.body["ValidateOnly"]
    told = []
    for it in request.body["Topics"]:
        error = _grown(session.cluster, it, is_trial)
        why = _why(error) if error else None
        told.append({"Name": it["Name"], "ErrorCode": error, "ErrorMessage": why})
    return {"Results": told}


def _grown(cluster: KafkaCluster, wanted: Struct, is_trial: bool) -> Error:  # noqa: FBT001
    topic = topic_of(cluster, wanted)
    if isinstance(topic, Error):
        return topic
    there = len(topic.partitions)
    added = wanted["Count"] - there
    if not cluster.has_room(added):
        return Error.INVALID_PARTITIONS
    leaders = _leaders(cluster, wanted["Assignments"] or (), there)
    if isinstance(leaders, Error):
        return leaders
    if leaders and len(leaders) != added:
        return Error.INVALID_REPLICA_ASSIGNMENT
    if not is_trial:
        cluster.grow(topic, added, leaders)
    return Error.NONE


# -- settings ----------------------------------------------------------------------------------


async def describe_configs(session: KafkaSession, request: Request) -> Struct:
    """Answer what topics and this broker are set to."""
    return {"Results": [_described(session, it) for it in request.body["Resources"]]}


def _described(session: KafkaSession, wanted: Struct) -> Struct:
    kind, name = wanted["ResourceType"], wanted["ResourceName"]
    told = {"ResourceType": kind, "ResourceName": name}
    found = _settings(session, kind, name)
    if isinstance(found, Error):
        return {**told, "ErrorCode": found, "ErrorMessage": _why(found)}
    keys = wanted["ConfigurationKeys"]
    return {**told, "Configs": [it for it in found if keys is None or it["Name"] in keys]}


def _settings(session: KafkaSession, kind: int, name: str) -> list[Struct] | Error:
    cluster = session.cluster
    if kind == _TOPIC:
        topic = cluster.topics.get(name)
        if topic is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        return [_setting(key, value, _OF_TOPIC) for key, value in topic.configs.items()]
    if kind != _BROKER or name != str(session.node):  # brokers answer for themselves alone
        return Error.INVALID_REQUEST
    listener = f"{session.context.users.listener}://{cluster.nodes[session.node]}"
    values = {
        "advertised.listeners": listener,
        "listeners": listener,
        "node.id": str(session.node),
        "num.partitions": str(cluster.partitions_or_default(_DEFAULT)),
        "process.roles": "broker,controller",
    }
    return [_setting(key, value, _OF_BROKER) for key, value in values.items()]


def _setting(name: str, value: str | None, source: int) -> Struct:
    told = {"Name": name, "Value": value, "ConfigSource": source}
    synonym = {"Name": name, "Value": value, "Source": source}
    return {**told, "ReadOnly": source == _OF_BROKER, "Synonyms": [synonym], "ConfigType": _STRING}


HANDLERS: Mapping[int, Handler] = {
    Key.CREATE_TOPICS: create_topics,
    Key.DELETE_TOPICS: delete_topics,
    Key.CREATE_PARTITIONS: create_partitions,
    Key.DESCRIBE_CONFIGS: describe_configs,
}
