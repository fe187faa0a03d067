"""Walks over bodies of all messages and versions."""

from __future__ import annotations

from random import Random

import pytest

from gateway.errors import PeerError
from gateway.wire.kafka.schema import REQUEST_STEPS, Api, Field, Schema, api, apis, of
from gateway.wire.kafka.walk import Place, plan, read_unsigned, splice, unsigned
from tests.apache_kafka.encoding import body
from tests.support.versions import case

SEEDS = range(5)
ADDRESSES = frozenset({"NodeId", "BrokerId", "Host", "Port"})

MESSAGES = [
    case(schema, version, schema, version, id=f"{it.name}-{kind}-{version}")
    for it in apis()
    for kind, schema in (("request", it.request), ("response", it.response))
    for version in range(schema.first, schema.last + 1)
]


def _names(fields: tuple[Field, ...], version: int) -> frozenset[str]:
    """The names of all fields, at all levels."""
    here = list(of(fields, version))
    inner = (_names(it.fields, version) for it in here)
    return frozenset(it.name for it in here).union(*inner)


@pytest.mark.parametrize(("schema", "version"), MESSAGES)
def test_each_wanted_field_is_found_where_it_stands(schema: Schema, version: int) -> None:
    random = Random(version)
    names = sorted(_names(schema.fields, version))
    choices = [
        ADDRESSES,
        frozenset(names),
        *(frozenset(random.sample(names, 1)) for _ in names[:3]),
    ]
    for wanted in choices:
        for seed in SEEDS:
            made = body(schema, version, wanted, seed)
            frame = b"head" + made.data + b"tail"
            found = plan(schema, version, wanted).walk(frame, 4, len(frame) - 4)
            assert [(it.name, frame[it.start : it.end]) for it in found.places] == made.noted
            assert found.end <= len(frame) - 4
            whole = plan(schema, version, wanted, whole=True).walk(frame, 4, len(frame) - 4)
            assert (whole.places, whole.end) == (found.places, len(frame) - 4)


@pytest.mark.parametrize(("schema", "version"), MESSAGES)
def test_a_torn_body_is_a_violation(schema: Schema, version: int) -> None:
    made = body(schema, version, (), 1)
    whole = plan(schema, version, whole=True)
    for end in range(min(len(made.data), 300)):
        with pytest.raises(PeerError):
            whole.walk(bytes(made.data), 0, end)


@pytest.mark.parametrize(("schema", "version"), MESSAGES)
def test_any_bytes_are_walked_or_refused(schema: Schema, version: int) -> None:
    random = Random(version)
    whole = plan(schema, version, whole=True)
    for _ in range(20):
        data = bytearray(body(schema, version, (), 2).data)
        for _ in range(3):
            if data:
                data[random.randrange(len(data))] = random.randrange(256)
        try:
            found = whole.walk(bytes(data), 0, len(data))
        except PeerError:
            continue
        assert found.end <= len(data)


def _with_tagged(it: Api) -> bool:
    return any(field.tagged <= it.response.last for field in it.response.fields)


@pytest.mark.parametrize("it", [it for it in apis() if _with_tagged(it)], ids=lambda it: it.name)
def test_tagged_fields_have_the_size_of_what_is_put_there(it: Api) -> None:
    version, schema = it.response.last, it.response
    for seed in SEEDS:
        made = body(schema, version, {"Host"}, seed)
        frame = bytes(made.data)
        found = plan(schema, version, frozenset({"Host"})).walk(frame, 0, len(frame))
        hosts = [unsigned(201) + b"h" * 200 for _ in found.places]
        changed = splice(frame, found, zip(found.places, hosts, strict=True))
        again = plan(schema, version, frozenset({"Host"}), whole=True)
        found = again.walk(changed, 0, len(changed))
        assert [changed[it.start : it.end] for it in found.places] == hosts
        assert found.end == len(changed)


FETCH = api(1)
FETCH_BODY = bytes.fromhex("ffffffff 00000000 00000000 00000000 00 00000000 00000000 01 01 01")
"""A request of version 12 without topics, up to its tagged fields."""


@pytest.mark.parametrize("size", [1, 2, 4, 9])
@pytest.mark.parametrize("wanted", ["ClusterId", "SessionId"])
def test_a_tagged_field_of_another_size_than_it_states_is_a_violation(
    size: int, wanted: str
) -> None:
    """Brokers read what stands in it, and go on behind that: see tests/apache_kafka."""
    assert FETCH is not None
    frame = FETCH_BODY + bytes([1, 0, size]) + unsigned(3) + b"ab" + bytes(10)
    with pytest.raises(PeerError):
        plan(FETCH.request, 12, frozenset({wanted}), whole=True).walk(frame, 0, len(frame))


METADATA = api(3)
assert METADATA is not None


@pytest.mark.parametrize("array", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\x80" * 5])
def test_an_array_that_cannot_be_there_is_refused_before_it_is_walked(array: bytes) -> None:
    """A body of fifteen bytes that has some decoders allocate gigabytes."""
    assert METADATA is not None
    version = METADATA.request.last
    names = _names(METADATA.request.fields, version)
    with pytest.raises(PeerError):
        plan(METADATA.request, version, names).walk(array + bytes(10), 0, len(array) + 10)


def test_a_legacy_array_of_the_same_kind_is_refused() -> None:
    assert METADATA is not None
    frame = b"\x7f\xff\xff\xff" + bytes(11)
    with pytest.raises(PeerError, match="length of 2147483647"):
        plan(METADATA.request, 0, frozenset({"Name"})).walk(frame, 0, len(frame))


def test_the_steps_of_one_walk_are_bounded() -> None:
    assert METADATA is not None
    count = REQUEST_STEPS + 1
    frame = count.to_bytes(4) + bytes(2 * count)
    with pytest.raises(PeerError, match="too many fields"):
        plan(METADATA.request, 0, frozenset({"Name"})).walk(frame, 0, len(frame))


def test_a_walk_ends_behind_the_last_wanted_field() -> None:
    assert METADATA is not None
    version = METADATA.response.last
    frame = bytes(body(METADATA.response, version, (), 3).data)
    brokers = plan(METADATA.response, version, frozenset({"Port"})).walk(frame, 0, len(frame))
    topics = plan(METADATA.response, version, frozenset({"TopicId"})).walk(frame, 0, len(frame))
    assert brokers.end < topics.end


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2**31, 2**32 - 1])
def test_lengths_are_read_as_they_are_written(number: int) -> None:
    data = unsigned(number)
    assert read_unsigned(data, 0, len(data)) == (number, len(data))


def test_places_without_a_change_leave_the_frame() -> None:
    assert METADATA is not None
    frame = bytes(body(METADATA.response, 12, (), 4).data)
    found = plan(METADATA.response, 12, ADDRESSES).walk(frame, 0, len(frame))
    same = [(it, frame[it.start : it.end]) for it in found.places]
    assert splice(frame, found, same) == frame
    assert all(isinstance(it, Place) for it in found.places)
