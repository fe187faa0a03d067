"""Topics that administrators make, and settings that they read."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.lab.kafka.administering import LONGEST_CONFIG, MOST_CONFIGS
from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.users import Users
from tests.unit.lab.kafka.conftest import TOPIC
from tests.unit.lab.kafka.playbook import Body, Brokers, Client, errors

TOPICS, BROKERS = 2, 4
"""Kinds of resources."""


async def create(client: Client, *names: str, version: int = 7, **fields: Any) -> list[Body]:
    trial = fields.pop("validateOnly", False)
    topics = [{"Name": it, "NumPartitions": 2, "ReplicationFactor": 1, **fields} for it in names]
    told = await client.ask(Key.CREATE_TOPICS, version, Topics=topics, validateOnly=trial)
    return list(told["Topics"])


@pytest.mark.parametrize("version", range(2, 8))
async def test_each_version_makes_a_topic(brokers: Brokers, client: Client, version: int) -> None:
    (told,) = await create(client, "new", version=version)
    assert told["ErrorCode"] == Error.NONE
    topic = brokers.cluster.topics["new"]
    assert len(topic.partitions) == 2
    assert told.get("TopicId", topic.id) == topic.id


async def test_a_trial_makes_nothing(brokers: Brokers, client: Client) -> None:
    told = await create(client, "new", TOPIC, "a b", validateOnly=True)
    refused = [Error.TOPIC_ALREADY_EXISTS, Error.INVALID_TOPIC_EXCEPTION]
    assert errors(told) == [Error.NONE, *refused]
    assert set(brokers.cluster.topics) == {TOPIC}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"NumPartitions": 0}, Error.INVALID_PARTITIONS),
        ({"NumPartitions": 2**31 - 1}, Error.INVALID_PARTITIONS),
        ({"ReplicationFactor": 3}, Error.INVALID_REPLICATION_FACTOR),
        ({"ReplicationFactor": 0}, Error.INVALID_REPLICATION_FACTOR),
        ({"Configs": [{"Name": "x" * (LONGEST_CONFIG + 1)}]}, Error.INVALID_REQUEST),
        (
            {"Configs": [{"Name": str(it)} for it in range(MOST_CONFIGS + 1)]},
            Error.INVALID_REQUEST,
        ),
        ({"Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]}, Error.INVALID_REQUEST),
    ],
)
async def test_improper_topics_are_refused(client: Client, fields: Body, error: Error) -> None:
    assert errors(await create(client, "new", **fields)) == [error]


async def test_a_name_that_comes_twice_is_refused(brokers: Brokers, client: Client) -> None:
    assert errors(await create(client, "new", "new")) == [Error.INVALID_REQUEST] * 2
    assert "new" not in brokers.cluster.topics


async def test_a_creator_can_say_who_leads(brokers: Brokers, client: Client) -> None:
    chosen = {"NumPartitions": -1, "ReplicationFactor": -1}
    replicas = [(1, [1, 2]), (0, [2, 1])]
    assignments = [{"PartitionIndex": it, "BrokerIds": ids} for it, ids in replicas]
    told = await create(client, "new", Assignments=assignments, **chosen)
    assert errors(told) == [Error.NONE]
    assert [it.leader for it in brokers.cluster.topics["new"].partitions] == [2, 1]


@pytest.mark.parametrize("replicas", [[(0, [9])], [(0, [])], [(1, [1])], [(0, [1]), (0, [2])]])
async def test_replicas_that_cannot_be_are_refused(
    client: Client, replicas: list[tuple[int, list[int]]]
) -> None:
    chosen = {"NumPartitions": -1, "ReplicationFactor": -1}
    assignments = [{"PartitionIndex": it, "BrokerIds": ids} for it, ids in replicas]
    told = await create(client, "new", Assignments=assignments, **chosen)
    assert errors(told) == [Error.INVALID_REPLICA_ASSIGNMENT]


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_name(brokers: Brokers, client: Client, version: int) -> None:
    told = await client.ask(Key.DELETE_TOPICS, version, TopicNames=[TOPIC, "u"])
    assert errors(told["Responses"]) == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert not brokers.cluster.topics


async def test_topics_are_deleted_by_id(brokers: Brokers, client: Client) -> None:
    id = brokers.cluster.topics[TOPIC].id
    wanted = [{"Name": None, "TopicId": id}] * 2
    told = await client.ask(Key.DELETE_TOPICS, 6, Topics=wanted)
    assert errors(told["Responses"]) == [Error.NONE, Error.UNKNOWN_TOPIC_ID]
    assert told["Responses"][0]["Name"] == TOPIC


async def grow(client: Client, count: int, version: int = 3, **fields: Any) -> int:
    trial = fields.pop("ValidateOnly", False)
    topics = [{"Name": TOPIC, "Count": count, **fields}]
    told = await client.ask(Key.CREATE_PARTITIONS, version, Topics=topics, ValidateOnly=trial)
    return int(told["Results"][0]["ErrorCode"])


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(brokers: Brokers, client: Client, version: int) -> None:
    assert await grow(client, 4, version) == Error.NONE
    assert len(brokers.cluster.topics[TOPIC].partitions) == 4


async def test_a_trial_adds_no_partitions(brokers: Brokers, client: Client) -> None:
    assert await grow(client, 4, ValidateOnly=True) == Error.NONE
    assert len(brokers.cluster.topics[TOPIC].partitions) == 2


@pytest.mark.parametrize(
    ("count", "fields", "error"),
    [
        (2, {}, Error.INVALID_PARTITIONS),
        (1, {}, Error.INVALID_PARTITIONS),
        (2**31 - 1, {}, Error.INVALID_PARTITIONS),
        (3, {"Name": "u"}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        (3, {"Assignments": [{"BrokerIds": [9]}]}, Error.INVALID_REPLICA_ASSIGNMENT),
        (4, {"Assignments": [{"BrokerIds": [1]}]}, Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_partitions_that_cannot_be_are_refused(
    client: Client, count: int, fields: Body, error: Error
) -> None:
    assert await grow(client, count, **fields) == error


async def test_added_partitions_are_led_as_the_creator_says(
    brokers: Brokers, client: Client
) -> None:
    assert await grow(client, 4, Assignments=[{"BrokerIds": [2]}, {"BrokerIds": [1]}]) == 0
    leaders = [it.leader for it in brokers.cluster.topics[TOPIC].partitions]
    assert leaders == [1, 2, 2, 1]


# -- settings ----------------------------------------------------------------------------------


async def configs(client: Client, kind: int, name: str, *keys: str, version: int = 4) -> Body:
    wanted = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys or None}
    told = await client.ask(Key.DESCRIBE_CONFIGS, version, Resources=[wanted])
    return dict(told["Results"][0])


def values(told: Body) -> dict[str, str]:
    return {it["Name"]: it["Value"] for it in told["Configs"]}


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_broker_tells_its_listeners(client: Client, version: int) -> None:
    told = values(await configs(client, BROKERS, "1", version=version))
    assert told["listeners"] == told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"


async def test_a_broker_with_logins_names_that_protocol() -> None:
    client = Brokers(Users({"amy": "secret"})).client()
    client.session.principal = "amy"
    told = values(await configs(client, BROKERS, "1", "listeners"))
    assert told == {"listeners": "SASL_PLAINTEXT://127.0.0.1:19092"}


@pytest.mark.parametrize(("kind", "name"), [(BROKERS, "2"), (BROKERS, ""), (8, "1")])
async def test_a_broker_answers_for_itself_alone(client: Client, kind: int, name: str) -> None:
    assert (await configs(client, kind, name))["ErrorCode"] == Error.INVALID_REQUEST


async def test_what_the_creator_of_a_topic_has_set_is_told(client: Client) -> None:
    await create(client, "new", Configs=[{"Name": "retention.ms", "Value": "5"}])
    assert values(await configs(client, TOPICS, "new")) == {"retention.ms": "5"}
    assert values(await configs(client, TOPICS, "new", "other")) == {}
    told = await configs(client, TOPICS, "u")
    assert told["ErrorCode"] == Error.UNKNOWN_TOPIC_OR_PARTITION
