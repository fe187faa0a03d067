"""Lookups of owners, partitions, topics and schemas."""

from __future__ import annotations

import pytest

from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.faults import Faults
from gateway.lab.sandbox.names import FullTopicName, parse_topic
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandLookupTopicResponse, ServerError
from gateway.wire.pulsar.frames import Kind
from tests.unit.lab.sandbox.playbook import NOW, TOPIC, URLS, Client

Lookup = CommandLookupTopicResponse


def full_name(text: str) -> FullTopicName:
    name = parse_topic(text)
    assert name is not None
    return name


# -- owners --------------------------------------------------------------------------------------


def test_the_owner_answers_connect(client: Client) -> None:
    answer = client.ask(Kind.LOOKUP, topic=TOPIC, request_id=7)
    assert (answer.request_id, answer.response) == (7, Lookup.Connect)
    assert answer.brokerServiceUrl == URLS[0]
    assert not answer.proxy_through_service_url


def test_other_brokers_redirect_to_the_owner(cluster: SandboxCluster) -> None:
    answer = Client(cluster, broker=1).ask(Kind.LOOKUP, topic=TOPIC, request_id=7)
    assert (answer.response, answer.authoritative) == (Lookup.Redirect, True)
    assert answer.brokerServiceUrl == URLS[0]


def test_partitions_spread_over_the_brokers(cluster: SandboxCluster) -> None:
    cluster.create(full_name("parted"), 4)
    owners = [cluster.owner(full_name(f"parted-partition-{number}")) for number in range(4)]
    assert sorted(owners) == [0, 0, 1, 1]


def test_a_pattern_may_be_looked_up_as_if_it_were_a_topic(client: Client) -> None:
    pattern = "persistent://public/default/k1-[xyz].*"
    answer = client.ask(Kind.LOOKUP, topic=pattern, request_id=7)
    assert answer.response in {Lookup.Connect, Lookup.Redirect}


@pytest.mark.parametrize("topic", ["", "ftp://a/b/c", "persistent://a/b", "x" * 2000])
def test_invalid_names_are_refused(client: Client, topic: str) -> None:
    answer = client.ask(Kind.LOOKUP, topic=topic, request_id=7)
    assert (answer.response, answer.error) == (Lookup.Failed, ServerError.InvalidTopicName)


def test_a_refusing_broker_fails_lookups_with_not_ready(cluster: SandboxCluster) -> None:
    client = Client(cluster, faults=Faults(refusing_until=NOW + 1))
    lookup = client.ask(Kind.LOOKUP, topic=TOPIC, request_id=7)
    partitions = client.ask(Kind.PARTITIONED_METADATA, topic=TOPIC, request_id=8)
    assert {lookup.error, partitions.error} == {ServerError.ServiceNotReady}


def test_a_producer_at_another_broker_must_look_up_again(cluster: SandboxCluster) -> None:
    answer = Client(cluster, broker=1).produce()
    assert answer.error == ServerError.ServiceNotReady
    assert "redo the lookup" in answer.message


# -- partitions and lists ------------------------------------------------------------------------


def test_partitions_are_counted(client: Client, cluster: SandboxCluster) -> None:
    cluster.create(full_name("parted"), 3)
    ask = {"request_id": 7, "metadata_auto_creation_enabled": False}
    full = "persistent://public/default/parted"
    assert client.ask(Kind.PARTITIONED_METADATA, topic=full, **ask).partitions == 3
    assert client.ask(Kind.PARTITIONED_METADATA, topic=TOPIC, **ask).partitions == 0


def test_an_unknown_topic_has_no_partitions(client: Client) -> None:
    answer = client.ask(Kind.PARTITIONED_METADATA, topic="new", request_id=7)
    assert (answer.partitions, answer.HasField("error")) == (0, False)


def test_an_unknown_topic_is_not_found_without_auto_creation(client: Client) -> None:
    ask = {"request_id": 7, "metadata_auto_creation_enabled": False}
    answer = client.ask(Kind.PARTITIONED_METADATA, topic="new", **ask)
    assert answer.error == ServerError.TopicNotFound


def test_topics_of_a_namespace_are_listed_with_each_partition(
    client: Client, cluster: SandboxCluster
) -> None:
    cluster.create(full_name("parted"), 2)
    cluster.create(full_name("tenant/space/elsewhere"), 0)
    ask = {"request_id": 7, "namespace": "public/default"}
    answer = client.ask(Kind.GET_TOPICS_OF_NAMESPACE, **ask)
    parted = "persistent://public/default/parted-partition-"
    assert sorted(answer.topics) == [f"{parted}0", f"{parted}1", TOPIC]
    assert not answer.filtered


def test_topics_are_listed_by_domain(client: Client, cluster: SandboxCluster) -> None:
    cluster.create(full_name("non-persistent://public/default/n"), 0)
    ask = {"request_id": 7, "namespace": "public/default"}
    found = [client.ask(Kind.GET_TOPICS_OF_NAMESPACE, mode=mode, **ask).topics for mode in range(3)]
    assert [len(topics) for topics in found] == [1, 1, 2]


def test_a_partitioned_topic_is_usable_only_by_its_partitions(
    client: Client, cluster: SandboxCluster
) -> None:
    cluster.create(full_name("parted"), 2)
    broker = cluster.owner(full_name("parted"))
    answer = Client(cluster, broker).produce(topic="persistent://public/default/parted")
    assert answer.error == ServerError.NotAllowedError


# -- schemas -------------------------------------------------------------------------------------

TEXT = {"name": "s", "schema_data": b"", "type": 1}
JSON = {"name": "j", "schema_data": b"{}", "type": 2}


def test_a_schema_is_returned_by_its_version(client: Client) -> None:
    made = client.ask(Kind.GET_OR_CREATE_SCHEMA, request_id=1, topic=TOPIC, schema=TEXT)
    got = client.ask(Kind.GET_SCHEMA, request_id=2, topic=TOPIC)
    assert made.schema_version == got.schema_version == bytes(8)
    assert (got.schema.name, got.schema.type) == ("s", 1)


def test_an_equal_schema_has_the_same_version_and_another_the_next(client: Client) -> None:
    other = {**JSON, "schema_data": b"{ }"}
    versions = [
        client.ask(Kind.GET_OR_CREATE_SCHEMA, request_id=1, topic=TOPIC, schema=it).schema_version
        for it in (JSON, other, JSON)
    ]
    assert versions == [bytes(8), bytes(7) + b"\x01", bytes(8)]


def test_old_versions_stay_available(client: Client) -> None:
    for data in (b"1", b"2"):
        schema = {**JSON, "schema_data": data}
        client.say(Kind.GET_OR_CREATE_SCHEMA, request_id=1, topic=TOPIC, schema=schema)
    old = client.ask(Kind.GET_SCHEMA, request_id=2, topic=TOPIC, schema_version=bytes(8))
    assert old.schema.schema_data == b"1"


def test_an_unknown_schema_is_not_found(client: Client) -> None:
    answer = client.ask(Kind.GET_SCHEMA, request_id=2, topic=TOPIC)
    assert answer.error_code == ServerError.TopicNotFound


def test_a_schema_of_another_type_is_incompatible(client: Client) -> None:
    assert client.produce(1, schema=TEXT).schema_version == bytes(8)
    assert client.produce(2, schema=JSON).error == ServerError.IncompatibleSchema
    (answer,) = client.subscribe(1, schema=JSON, permits=0)
    assert answer.error == ServerError.IncompatibleSchema
    answer = client.ask(Kind.GET_OR_CREATE_SCHEMA, request_id=1, topic=TOPIC, schema=JSON)
    assert answer.error_code == ServerError.IncompatibleSchema


def test_an_auto_consume_schema_is_not_kept(client: Client) -> None:
    client.subscribe(schema={"name": "auto", "schema_data": b"", "type": 21})
    answer = client.ask(Kind.GET_SCHEMA, request_id=2, topic=TOPIC)
    assert answer.error_code == ServerError.TopicNotFound


def test_partitions_share_their_schemas(client: Client) -> None:
    part = f"{TOPIC}-partition-1"
    client.say(Kind.GET_OR_CREATE_SCHEMA, request_id=1, topic=part, schema=TEXT)
    assert client.ask(Kind.GET_SCHEMA, request_id=2, topic=TOPIC).schema.name == "s"


def test_schemas_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.lab.sandbox.schemas.MOST_BYTES", 100)
    large = {**JSON, "schema_data": bytes(200)}
    answer = client.ask(Kind.GET_OR_CREATE_SCHEMA, request_id=1, topic=TOPIC, schema=large)
    assert answer.error_code == ServerError.NotAllowedError
