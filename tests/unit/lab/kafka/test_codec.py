"""Bodies of every message and version, as random as their schemas allow, are read and written."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.codec import MOST_ELEMENTS, decode, encode
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
def test_a_body_that_is_cut_is_a_violation(name: str, schema: Schema) -> None:
    for version in range(schema.first, schema.last + 1):
        data = bytes(body(schema, version, (), 1).data)
        for end in range(0, len(data), 1 + len(data) // 20):
            with pytest.raises(PeerError):
                decode(schema, version, data[:end])


METADATA, API_VERSIONS = _api(3).request, _api(18).request


def test_bytes_behind_a_body_are_left() -> None:
    """librdkafka 2.16 asks for all topics like this."""
    assert decode(METADATA, 13, bytes.fromhex("00000000010000"))["Topics"] is None


@pytest.mark.parametrize(
    ("schema", "version", "data"),
    [
        (METADATA, 0, "7fffffff"),
        (METADATA, 0, "fffffffe"),
        (METADATA, 0, "00000001 ffff"),
        (METADATA, 0, "00000001 0001 ff"),
        (METADATA, 9, "ffffffff7f"),
        (METADATA, 9, "01 00 00 00 01 63 05 00"),
        (METADATA, 9, "01 00 00 00 ffffffff0f"),
        (API_VERSIONS, 3, "ff"),
    ],
    ids=[
        *("a huge array", "below null", "null where it may not be", "no UTF-8"),
        *("a huge compact array", "a torn tag", "a huge number of tags", "an endless length"),
    ],
)
def test_what_cannot_be_is_a_violation(schema: Schema, version: int, data: str) -> None:
    with pytest.raises(PeerError):
        decode(schema, version, bytes.fromhex(data))


def test_a_body_has_a_most_of_elements() -> None:
    count = MOST_ELEMENTS + 1
    with pytest.raises(PeerError, match=f"{MOST_ELEMENTS} elements"):
        decode(METADATA, 0, count.to_bytes(4) + bytes(2 * count))


def test_a_tagged_field_of_another_size_than_it_states_is_a_violation() -> None:
    fetch = _api(1).request
    written = encode(fetch, 12, {"ClusterId": "abc"})
    at = written.index(b"\x04abc") - 1
    assert written[at] == 4
    with pytest.raises(PeerError, match="another size"):
        decode(fetch, 12, written[:at] + b"\x05" + written[at + 1 :] + b"\0")


def test_fields_that_are_not_given_are_null_or_empty() -> None:
    found = decode(METADATA, 12, encode(METADATA, 12, {"Topics": [{}]}))
    assert found["Topics"] == [{"TopicId": bytes(16), "Name": None}]
    assert found["AllowAutoTopicCreation"] is False
    assert decode(METADATA, 12, encode(METADATA, 12, {}))["Topics"] is None


def test_a_name_that_no_version_has_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="Topic"):
        encode(METADATA, 12, {"Topic": []})
