"""Schemas travel in commands at which the gateway stops, and the broker keeps them."""

from typing import Any

import pytest
from pulsar.schema import (  # type: ignore[import-untyped, unused-ignore]
    AvroSchema,
    JsonSchema,
    StringSchema,
)

from tests.real.clients import EARLIEST, RECEIVE_MS, Client, fresh_topic
from tests.real.records import Reading, Wide


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


def test_a_large_schema_passes(client: Client) -> None:
    assert exchange(client, JsonSchema(Wide), Wide()) == Wide()


def test_messages_carry_the_version_of_their_schema(client: Client) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Reading)).send(Reading(sensor="s", values=[]))
    consumer = client.subscribe(topic, "s", schema=JsonSchema(Reading), initial_position=EARLIEST)
    assert consumer.receive(RECEIVE_MS).schema_version() == "\0" * 8
