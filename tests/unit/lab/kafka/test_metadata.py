"""Brokers, topics, leaders and coordinators, as clients are told of them."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.lab.kafka.cluster import MOST_PARTITIONS, NOBODY, Topic
from gateway.lab.kafka.codes import Error, Key
from tests.unit.lab.kafka.conftest import TOPIC
from tests.unit.lab.kafka.playbook import Body, Brokers, Client, errors, known_api

ALL_METADATA = range(14)


async def metadata(client: Client, *topics: Body, version: int = -1, **fields: Any) -> Body:
    return await client.ask(Key.METADATA, version, Topics=list(topics), **fields)


def leaders(topic: Body) -> list[int]:
    return [it["LeaderId"] for it in topic["Partitions"]]


@pytest.mark.parametrize("version", ALL_METADATA)
async def test_each_version_tells_brokers_and_leaders(client: Client, version: int) -> None:
    told = await client.ask(Key.METADATA, version, Topics=None)
    brokers = [(it["NodeId"], it["Host"], it["Port"]) for it in told["Brokers"]]
    assert brokers == [(1, "127.0.0.1", 19092), (2, "127.0.0.2", 19093)]
    (topic,) = told["Topics"]
    assert topic["Name"] == TOPIC
    assert leaders(topic) == [1, 2]


async def test_no_topics_are_none_but_in_the_oldest_version(client: Client) -> None:
    assert (await metadata(client, version=1))["Topics"] == []
    assert [it["Name"] for it in (await metadata(client, version=0))["Topics"]] == [TOPIC]


async def test_a_topic_is_made_where_the_client_allows_it(client: Client) -> None:
    (topic,) = (await metadata(client, {"Name": "new"}))["Topics"]
    assert topic["ErrorCode"] == Error.UNKNOWN_TOPIC_OR_PARTITION
    told = await metadata(client, {"Name": "new"}, AllowAutoTopicCreation=True)
    (topic,) = told["Topics"]
    assert topic["ErrorCode"] == Error.NONE
    assert len(topic["Partitions"]) == 3
    (topic,) = (await metadata(client, {"Name": "old"}, version=3))["Topics"]
    assert topic["ErrorCode"] == Error.NONE


@pytest.mark.parametrize("name", ["", "..", "a b", "x" * 250, "ä"])
async def test_no_topic_of_an_invalid_name_is_made(client: Client, name: str) -> None:
    told = await metadata(client, {"Name": name}, AllowAutoTopicCreation=True)
    assert errors(told["Topics"]) == [Error.INVALID_TOPIC_EXCEPTION]


async def test_a_topic_is_found_by_its_id(brokers: Brokers, client: Client) -> None:
    id = brokers.cluster.topics[TOPIC].id
    told = await metadata(
        client, {"Name": None, "TopicId": id}, {"Name": None, "TopicId": bytes(16)}
    )
    assert errors(told["Topics"]) == [Error.NONE, Error.UNKNOWN_TOPIC_ID]
    assert told["Topics"][0]["Name"] == TOPIC


async def test_new_partitions_are_spread_over_the_brokers(brokers: Brokers) -> None:
    topic = brokers.cluster.create("wide", 6)
    assert isinstance(topic, Topic)
    assert sorted(it.leader for it in topic.partitions) == [1, 1, 1, 2, 2, 2]


async def test_there_is_a_most_of_partitions(brokers: Brokers) -> None:
    cluster = brokers.cluster
    assert cluster.create("huge", MOST_PARTITIONS) == Error.INVALID_PARTITIONS
    topic = cluster.create("large", MOST_PARTITIONS - 2)
    assert isinstance(topic, Topic)
    assert cluster.create("small", 1) == Error.INVALID_PARTITIONS
    cluster.delete(topic)
    assert isinstance(cluster.create("small", 1), Topic)


async def test_others_lead_the_partitions_of_a_stopped_broker(
    brokers: Brokers, client: Client
) -> None:
    brokers.cluster.stop(2)
    told = await client.ask(Key.METADATA, Topics=None)
    assert [it["NodeId"] for it in told["Brokers"]] == [1]
    first, second = told["Topics"][0]["Partitions"]
    assert (first["LeaderId"], first["LeaderEpoch"]) == (1, 0)
    assert (second["LeaderId"], second["LeaderEpoch"]) == (1, 1)
    assert (second["ReplicaNodes"], second["IsrNodes"]) == ([1, 2], [1])
    assert second["OfflineReplicas"] == [2]


async def test_a_broker_that_starts_leads_what_nobody_leads(brokers: Brokers) -> None:
    for node in (1, 2):
        brokers.cluster.stop(node)
    told = await brokers.client(1).ask(Key.METADATA, Topics=None)
    partitions = told["Topics"][0]["Partitions"]
    assert errors(partitions) == [Error.LEADER_NOT_AVAILABLE] * 2
    assert leaders(told["Topics"][0]) == [NOBODY] * 2
    brokers.cluster.start(2)
    assert [it.leader for it in brokers.cluster.topics[TOPIC].partitions] == [2, 2]


async def test_a_move_is_told_with_the_next_epoch(brokers: Brokers, client: Client) -> None:
    brokers.cluster.move(TOPIC, 0, 2)
    told = await client.ask(Key.METADATA, Topics=None)
    partition = told["Topics"][0]["Partitions"][0]
    assert (partition["LeaderId"], partition["LeaderEpoch"]) == (2, 1)


@pytest.mark.parametrize(
    ("topic", "partition", "node"), [("u", 0, 1), (TOPIC, 9, 1), (TOPIC, 0, 9)]
)
def test_a_move_of_what_is_not_there_fails(
    brokers: Brokers, topic: str, partition: int, node: int
) -> None:
    with pytest.raises(LookupError):
        brokers.cluster.move(topic, partition, node)


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_described(brokers: Brokers, client: Client, version: int) -> None:
    told = await client.ask(Key.DESCRIBE_CLUSTER, version, EndpointType=1)
    assert told["ClusterId"] == brokers.cluster.id
    assert [it["BrokerId"] for it in told["Brokers"]] == [1, 2]


async def test_controllers_are_told_to_nobody(client: Client) -> None:
    told = await client.ask(Key.DESCRIBE_CLUSTER, EndpointType=2)
    assert told["ErrorCode"] == Error.MISMATCHED_ENDPOINT_TYPE
    assert told["Brokers"] == []


@pytest.mark.parametrize("version", range(7))
async def test_each_version_finds_a_coordinator(client: Client, version: int) -> None:
    told = await client.ask(Key.FIND_COORDINATOR, version, Key="g", CoordinatorKeys=["g"])
    (found,) = told.get("Coordinators", [told])
    assert found["NodeId"] == client.session.cluster.coordinator("g")
    assert (found["Host"], found["Port"]) == client.session.cluster.nodes[found["NodeId"]].pair


async def test_groups_have_different_coordinators(brokers: Brokers) -> None:
    found = {brokers.cluster.coordinator(f"group {number}") for number in range(20)}
    assert found == {1, 2}


async def test_a_coordinator_can_be_chosen_and_another_takes_over(brokers: Brokers) -> None:
    brokers.cluster.coordinators["g"] = 2
    assert brokers.cluster.coordinator("g") == 2
    brokers.cluster.stop(2)
    assert brokers.cluster.coordinator("g") == 1
    brokers.cluster.stop(1)
    told = await brokers.client(1).ask(Key.FIND_COORDINATOR, CoordinatorKeys=["g"])
    assert errors(told["Coordinators"]) == [Error.COORDINATOR_NOT_AVAILABLE]


@pytest.mark.parametrize(
    ("kind", "error"),
    [(1, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (2, Error.INVALID_REQUEST)],
)
async def test_there_are_no_other_coordinators(client: Client, kind: int, error: Error) -> None:
    told = await client.ask(Key.FIND_COORDINATOR, KeyType=kind, CoordinatorKeys=["g"])
    assert errors(told["Coordinators"]) == [error]


def test_all_versions_of_metadata_are_tested() -> None:
    assert known_api(Key.METADATA).request.last == ALL_METADATA[-1]
