"""Bodies of every message and version, as random as their schemas allow, are read and written."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.lab.kafka.codec import decode, encode
from gateway.wire.kafka.schema import Api, Schema, api, apis
from gateway.wire.kafka.walk import unsigned
from tests.apache_kafka.encoding import UNKNOWN_TAG, body

SEEDS = 3
NEW = unsigned(UNKNOWN_TAG) + unsigned(3) + b"new"
"""A tagged field that no version knows, as random bodies have it."""


def _schemas() -> list[tuple[str, Schema]]:
    return [
        (f"{it.name} {side}", schema)
        for it in apis()
        for side, schema in (("request", it.request), ("response", it.response))
    ]


def _api(key: int) -> Api:
    found = api(key)
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "schema"), _schemas(), ids=lambda it: str(it)[:40])
def test_each_version_is_written_as_it_was_read(name: str, schema: Schema) -> None:
    for version in range(schema.first, schema.last + 1):
        for seed in range(SEEDS):
            data = bytes(body(schema, version, (), seed).data)
            found = decode(schema, version, data)
            written = encode(schema, version, found)
            if NEW in data:  # what is not known is not kept
                assert decode(schema, version, written) == found
            else:
                assert written == data


@pytest.mark.parametrize(("name", "schema"), _schemas(), ids=lambda it: str(it)[:40])
def test_a_body_that_is_cut_or_goes_on_is_a_violation(name: str, schema: Schema) -> None:
    for version in range(schema.first, schema.last + 1):
        data = bytes(body(schema, version, (), 1).data)
        for end in range(0, len(data), 1 + len(data) // 20):
            with pytest.raises(PeerError):
                decode(schema, version, data[:end])
        with pytest.raises(PeerError, match="behind a body"):
            decode(schema, version, data + b"\0")
