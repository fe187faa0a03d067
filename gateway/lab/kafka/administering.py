"""Handlers of administrative requests: topics, and configurations of topics and brokers.

Every broker does a controller's work. The configuration of a topic is kept and returned, and has no
effect.

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
    """Create topics (CreateTopics). A name that is in the request twice is refused."""
    wanted = request.body["Topics"]
    names = Counter(topic["Name"] for topic in wanted)
    is_trial = request.body["validateOnly"]
    responses = []
    for topic in wanted:
        unique = names[topic["Name"]] == 1
        created = _created(session.cluster, topic, is_trial) if unique else Error.INVALID_REQUEST
        responses.append(_creation(topic, created, len(session.cluster.nodes)))
    return {"Topics": responses}


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
    configs = {config["Name"]: config["Value"] for config in wanted["Configs"]}
    longest = max((len(text or "") for pair in configs.items() for text in pair), default=0)
    if len(configs) > MOST_CONFIGS or longest > LONGEST_CONFIG:
        return Error.INVALID_REQUEST
    partitions = len(leaders) or cluster.partitions_or_default(wanted["NumPartitions"])
    if is_trial:
        return cluster.refusal(wanted["Name"], partitions) or partitions
    return cluster.create(wanted["Name"], partitions, leaders=leaders, configs=configs)


def _leaders(cluster: KafkaCluster, assignments: Sequence[Struct], first: int) -> list[int] | Error:
    """Return the leader of each partition from a first one on, which is its first replica."""
    numbers = [
        assignment.get("PartitionIndex", at) for at, assignment in enumerate(assignments, first)
    ]
    by_number = dict(zip(numbers, assignments, strict=True))
    if sorted(by_number) != list(range(first, first + len(assignments))):
        return Error.INVALID_REPLICA_ASSIGNMENT
    brokers = [assignment["BrokerIds"] for assignment in assignments]
    if not all(ids and set(ids) <= set(cluster.nodes) for ids in brokers):
        return Error.INVALID_REPLICA_ASSIGNMENT
    return [by_number[number]["BrokerIds"][0] for number in sorted(by_number)]


def _creation(wanted: Struct, created: Topic | Error | int, replicas: int) -> Struct:
    """Return what the response says of one topic that was to be created."""
    if isinstance(created, Error):
        response = {"Name": wanted["Name"], "ErrorCode": created, "ErrorMessage": _why(created)}
        return {**response, "NumPartitions": _DEFAULT, "ReplicationFactor": _DEFAULT}
    configs = [_setting(config["Name"], config["Value"], _OF_TOPIC) for config in wanted["Configs"]]
    response = {"Name": wanted["Name"], "ReplicationFactor": replicas}
    response["Configs"] = [
        {name: config[name] for name in ("Name", "Value", "ConfigSource")} for config in configs
    ]
    if isinstance(created, Topic):
        return {**response, "TopicId": created.id, "NumPartitions": len(created.partitions)}
    return {**response, "NumPartitions": created}


def _why(error: Error) -> str:
    return error.name.lower().replace("_", " ")


async def delete_topics(session: KafkaSession, request: Request) -> Struct:
    """Delete topics, by name or id (DeleteTopics), and the offsets that groups have committed for
    these topics."""
    body = request.body
    wanted = body.get("Topics") or [{"Name": name} for name in body.get("TopicNames", ())]
    return {"Responses": [_deleted(session, topic) for topic in wanted]}


def _deleted(session: KafkaSession, wanted: Struct) -> Struct:
    topic = topic_of(session.cluster, wanted)
    if isinstance(topic, Error):
        response = {"Name": wanted["Name"], "TopicId": wanted.get("TopicId")}
        return {**response, "ErrorCode": topic, "ErrorMessage": _why(topic)}
    session.cluster.delete(topic)
    session.groups.forget(topic.name)
    return {"Name": topic.name, "TopicId": topic.id}


async def create_partitions(session: KafkaSession, request: Request) -> Struct:
    """Add partitions to topics (CreatePartitions)."""
    is_trial = request.body["ValidateOnly"]
    results = []
    for topic in request.body["Topics"]:
        error = _grown(session.cluster, topic, is_trial)
        why = _why(error) if error else None
        results.append({"Name": topic["Name"], "ErrorCode": error, "ErrorMessage": why})
    return {"Results": results}


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
    """Return the configurations of topics and of this broker (DescribeConfigs)."""
    return {"Results": [_described(session, wanted) for wanted in request.body["Resources"]]}


def _described(session: KafkaSession, wanted: Struct) -> Struct:
    kind, name = wanted["ResourceType"], wanted["ResourceName"]
    response = {"ResourceType": kind, "ResourceName": name}
    settings = _settings(session, kind, name)
    if isinstance(settings, Error):
        return {**response, "ErrorCode": settings, "ErrorMessage": _why(settings)}
    keys = wanted["ConfigurationKeys"]
    chosen = [setting for setting in settings if keys is None or setting["Name"] in keys]
    return {**response, "Configs": chosen}


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
    setting = {"Name": name, "Value": value, "ConfigSource": source}
    synonym = {"Name": name, "Value": value, "Source": source}
    return {
        **setting,
        "ReadOnly": source == _OF_BROKER,
        "Synonyms": [synonym],
        "ConfigType": _STRING,
    }


HANDLERS: Mapping[int, Handler] = {
    Key.CREATE_TOPICS: create_topics,
    Key.DELETE_TOPICS: delete_topics,
    Key.CREATE_PARTITIONS: create_partitions,
    Key.DESCRIBE_CONFIGS: describe_configs,
}
