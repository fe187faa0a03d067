"""Schemas of topics: what versions to come may add is nullable."""

from __future__ import annotations

import io
import json

import msgspec
import pytest
from fastavro import parse_schema, schemaless_writer

from gateway.usage.avro import definition
from gateway.usage.records import Event, Identity, Usage, Wait
from tests.support.boxes import event, usage


@pytest.mark.parametrize("kind", [Usage, Event])
def test_fields_that_may_be_left_out_are_null_by_default(kind: type[Identity]) -> None:
    fields = {it["name"]: it for it in definition(kind)["fields"]}
    for field in msgspec.structs.fields(kind):
        written = fields.pop(field.encode_name)
        if field.required:
            assert isinstance(written["type"], str)
            assert "default" not in written
        else:
            assert written["type"][0] == "null"
            assert written["default"] is None
    assert not fields


@pytest.mark.parametrize(
    "record",
    [usage(1), usage(2, tenant="acme", throttles=[Wait("r", 1, 2)], lat_bucket=[1, 2]), event(1)],
    ids=["short", "whole", "event"],
)
def test_records_are_of_their_schema(record: Identity) -> None:
    schema = parse_schema(definition(type(record)))
    read = json.loads(msgspec.json.encode(record))
    schemaless_writer(io.BytesIO(), schema, read, strict_allow_default=True)
