"""Schemas travel in commands at which the gateway stops, and the broker checks them."""

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest
from pulsar.schema import JsonSchema  # type: ignore[import-untyped, unused-ignore]

from .brokers.standalone import Standalone
from .clients import Client, fresh_topic
from .records import Reading, Unlike, Wide


def test_a_large_schema_passes(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Wide)).send(Wide())
    stored = pulsar.admin.request(
        "GET", f"admin/v2/schemas/{topic.removeprefix('persistent://')}/schema"
    )
    assert len(stored["data"]) > 30_000


def test_the_broker_keeps_the_schema(client: Client, pulsar: Standalone) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Reading)).send(Reading(sensor="s", values=[]))
    path = f"admin/v2/schemas/{topic.removeprefix('persistent://')}/schema"
    assert pulsar.admin.request("GET", path)["type"] == "JSON"


def test_an_incompatible_schema_is_refused_by_name(client: Client) -> None:
    topic = fresh_topic()
    client.create_producer(topic, schema=JsonSchema(Reading))
    with pytest.raises(client_library.IncompatibleSchema):
        client.create_producer(topic, schema=JsonSchema(Unlike))
