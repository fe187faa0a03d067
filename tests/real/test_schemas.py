"""Schemas travel in commands that the gateway stops at, and are checked by the broker."""

from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest
from pulsar.schema import (  # type: ignore[import-untyped, unused-ignore]
    Array,
    AvroSchema,
    Integer,
    JsonSchema,
    Record,
    String,
    StringSchema,
)

from .brokers.standalone import Standalone
from .clients import EARLIEST, RECEIVE_MS, Client, fresh_topic


class Reading(Record):  # type: ignore[misc, unused-ignore]
    sensor = String()
    values = Array(Integer())


class Unlike(Record):  # type: ignore[misc, unused-ignore]
    sensor = Integer(required=True)
    other = Integer(required=True)


# A record of some hundred fields: its definition alone is tens of kilobytes in one PRODUCER
# command.
Wide = type(
    "Wide",
    (Record,),
    {f"a_field_with_a_rather_long_name_{number:03}": String() for number in range(400)},
)


def exchange(client: Client, schema: Any, value: Any) -> Any:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", schema=schema)
    client.create_producer(topic, schema=schema).send(value)
    message = consumer.receive(RECEIVE_MS)
    consumer.acknowledge(message)
    return message.value()


def test_json_records_arrive(client: Client) -> None:
    reading = Reading(sensor="s1", values=[1, 2, 3])
    assert exchange(client, JsonSchema(Reading), reading) == reading


def test_avro_records_arrive(client: Client) -> None:
    pytest.importorskip("fastavro", reason="the client needs fastavro for AVRO")
    reading = Reading(sensor="s1", values=[1, 2, 3])
    assert exchange(client, AvroSchema(Reading), reading) == reading


def test_texts_arrive(client: Client) -> None:
    assert exchange(client, StringSchema(), "grüße") == "grüße"


def test_a_large_schema_passes(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Wide)).send(Wide())
    stored = pulsar.admin.request(
        "GET", f"admin/v2/schemas/{topic.removeprefix('persistent://')}/schema"
    )
    assert len(stored["data"]) > 30_000


def test_the_schema_and_its_version_are_kept_at_the_broker(
    client: Client, pulsar: Standalone
) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Reading)).send(Reading(sensor="s", values=[]))
    message = client.subscribe(
        topic, "s", schema=JsonSchema(Reading), initial_position=EARLIEST
    ).receive(RECEIVE_MS)
    assert message.schema_version() == "\0" * 8
    assert (
        pulsar.admin.request(
            "GET", f"admin/v2/schemas/{topic.removeprefix('persistent://')}/schema"
        )["type"]
        == "JSON"
    )


def test_an_incompatible_schema_is_refused_by_name(client: Client) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Reading))
    with pytest.raises(client_library.IncompatibleSchema):
        client.create_producer(topic, schema=JsonSchema(Unlike))
