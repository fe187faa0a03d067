"""Values of a metadata store: plain, compressed in each way, torn, and of liars."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.pipeline.ledgers import metadata
from gateway.pipeline.ledgers._proto import managed_ledger_pb2 as pb
from gateway.pipeline.ledgers.metadata import (
    LARGEST,
    LARGEST_NUMBER,
    MAGIC,
    CursorInfo,
    LedgerInfo,
    Position,
    Range,
    Refusal,
    TopicInfo,
    cursor_of,
    topic_of,
)
from tests.unit.pipeline.ledgers.samples import (
    COMPRESSIONS,
    closed,
    cursor,
    cursor_value,
    packed,
    topic_value,
)

LEDGERS = (closed(4, 5), closed(7, 50, offloaded=True), LedgerInfo(11, 0, 0))
CURSOR = cursor(4, 2, (4, 3, 4), (7, -1, 12))

REAL_TOPIC = bytes.fromhex(
    "47780000000408011046f2050a0e08041005189f0820b8e4a183a1340a0e0805100014da10001206200023a0e510"
    "0012071000c0bbe5a183a1340a04080a2000"
)
REAL_CURSOR = bytes.fromhex(
    "47780000000508011081012408ff0100f3040110051800220c0a04080510011204080510020e0011030e0011040e"
    "00930610001204080610010e0011020e00940322150a0d080710ff0100620112040807104f0011074f0013074f00"
    "310710031c0080043095eea183a134"
)
"""Written by Pulsar 4.2.4 with LZ4: a topic of five ledgers, and a cursor with seven ranges."""


def text_of(found: object) -> str:
    assert isinstance(found, Refusal)
    return found.text


def test_values_of_a_real_broker_are_read() -> None:
    topic, position = topic_of(REAL_TOPIC), cursor_of(REAL_CURSOR)
    assert isinstance(topic, TopicInfo)
    assert [(it.id, it.entries, it.bytes) for it in topic.ledgers] == [
        *((id, 5, 1055) for id in (4, 5, 6, 7)),
        (10, 0, 0),
    ]
    assert (topic.open_ledger, topic.open_known) == (10, False)
    assert topic.ledgers[0].closed_ms == 1_795_571_610_168
    assert isinstance(position, CursorInfo)
    assert position.mark == Position(5, 0)
    assert len(position.deleted) == 7
    assert position.deleted[4] == Range(Position(7, -1), Position(7, 0))
    assert not position.lagging


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_each_compression_gives_the_same_as_none(kind: str) -> None:
    assert topic_of(packed(topic_value(*LEDGERS), kind)) == TopicInfo(LEDGERS, 11)
    assert cursor_of(packed(cursor_value(CURSOR), kind)) == CURSOR
    assert topic_of(topic_value(*LEDGERS)) == TopicInfo(LEDGERS, 11)
    assert cursor_of(cursor_value(CURSOR)) == CURSOR


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_an_empty_topic_may_be_compressed_too(kind: str) -> None:
    assert topic_of(packed(b"", kind)) == topic_of(b"") == TopicInfo(())


def test_a_stream_of_zlib_may_have_its_end() -> None:
    value = topic_value(*LEDGERS)
    header = packed(value, "NONE")[: -len(value)].replace(b"\x08\x00", b"\x08\x02")
    assert topic_of(header + zlib.compress(value)) == TopicInfo(LEDGERS, 11)


def test_an_open_cursor_lags() -> None:
    found = cursor_of(cursor_value(CURSOR, ledger=12))
    assert isinstance(found, CursorInfo)
    assert found == CURSOR._replace(lagging=True)


def test_a_cursor_without_a_position_is_known_as_such() -> None:
    assert cursor_of(cursor_value(CursorInfo(None), ledger=3)) == CursorInfo(None, lagging=True)


@pytest.mark.parametrize(
    ("ledgers", "open_ledger"),
    [
        ((closed(1, 5), LedgerInfo(2, 0, 0)), 2),
        ((closed(1, 5), closed(2, 0)), None),
        ((LedgerInfo(1, 5, 500),), None),
        ((), None),
    ],
    ids=["written", "closed and empty", "from before there were times", "none"],
)
def test_the_open_ledger_is_the_last_one_that_nobody_closed(
    ledgers: tuple[LedgerInfo, ...], open_ledger: int | None
) -> None:
    found = topic_of(topic_value(*ledgers))
    assert isinstance(found, TopicInfo)
    assert found.open_ledger == open_ledger


@pytest.mark.parametrize("size", [LARGEST + 1, (1 << 31) - 1, -1])
@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_claim_of_a_huge_size_is_refused(kind: str, size: int) -> None:
    assert f"claims {size} bytes" in text_of(topic_of(packed(topic_value(*LEDGERS), kind, size)))


@pytest.mark.parametrize("off", [-1, 1])
@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_a_wrong_size_is_refused(kind: str, off: int) -> None:
    value = topic_value(*LEDGERS)
    assert kind in text_of(topic_of(packed(value, kind, len(value) + off)))


@pytest.mark.parametrize("kind", sorted({*COMPRESSIONS} - {"NONE"}))
def test_what_expands_beyond_its_claim_is_refused(kind: str) -> None:
    assert kind in text_of(topic_of(packed(bytes(10_000_000), kind, 100)))


@pytest.mark.parametrize("kind", COMPRESSIONS)
@pytest.mark.parametrize("read", [topic_of, cursor_of])
def test_a_torn_value_is_refused(
    kind: str, read: Callable[[bytes], TopicInfo | CursorInfo | Refusal]
) -> None:
    whole = packed(topic_value(*LEDGERS) if read is topic_of else cursor_value(CURSOR), kind)
    assert not isinstance(read(whole), Refusal)
    # What brokers flush ends with an empty block, which holds nothing.
    end = len(whole) - (5 if kind == "ZLIB" else 0)
    assert {type(read(whole[:at])) for at in range(2, end)} == {Refusal}
    assert all(read(whole[:at]) == read(whole) for at in range(end + 1, len(whole)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\xff" * 10, "no ManagedLedgerInfo: 10 bytes that begin with ffff"),
        (topic_value(*LEDGERS)[:-1], "no ManagedLedgerInfo"),
        (MAGIC, "torn in its header"),
        (MAGIC + b"\xff\xff\xff\xff" + bytes(9), "torn in its header"),
        (MAGIC + b"\0\0\0\0" + bytes(9), "torn in its header"),
        (MAGIC + b"\0\0\0\4" + b"\x08\x63\x10\x01" + bytes(9), "names no compression known here"),
        (b"\x0a\x00", "no ManagedLedgerInfo"),
        (topic_value(closed(2, 1), closed(1, 1)), "not in order"),
        (topic_value(closed(1, 1), closed(1, 1)), "not in order"),
        (topic_value(closed(1, -5, 7)), "negative"),
        (topic_value(closed(1, 5, -7)), "negative"),
        (topic_value(LedgerInfo(-3, 1, 1)), "negative"),
        (topic_value(closed(1, 1, LARGEST_NUMBER), closed(2, 1, 1)), "64 bits"),
    ],
)
def test_what_no_broker_writes_is_refused_with_a_reason(value: bytes, text: str) -> None:
    assert text in text_of(topic_of(value))


def test_a_cursor_needs_its_ledger() -> None:
    assert "no ManagedCursorInfo: 0 bytes" in text_of(cursor_of(b""))


def test_more_than_the_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "MOST", 2)
    assert "3 ledgers: more than 2" in text_of(topic_of(topic_value(*LEDGERS)))
    assert isinstance(cursor_of(cursor_value(CURSOR)), CursorInfo)
    more = cursor(4, 2, (4, 3, 4), (7, -1, 12), (7, 20, 21))
    assert "3 ranges: more than 2" in text_of(cursor_of(cursor_value(more)))
    monkeypatch.setattr(metadata, "LARGEST", 10)
    assert "more than 10" in text_of(topic_of(topic_value(*LEDGERS)))


def test_unknown_fields_do_not_matter() -> None:
    value = topic_value(*LEDGERS) + b"\xf2\x3f\x03abc"
    assert topic_of(value) == TopicInfo(LEDGERS, 11)


@given(st.binary(max_size=200))
@example(MAGIC + b"\0\0\0\4" + b"\x08\x01\x10\x00")
def test_any_bytes_are_read_or_refused(value: bytes) -> None:
    for found in (topic_of(value), topic_of(MAGIC + value)):
        assert isinstance(found, TopicInfo | Refusal)
    for position in (cursor_of(value), cursor_of(MAGIC + value)):
        assert isinstance(position, CursorInfo | Refusal)


@given(
    st.sampled_from([it for it in COMPRESSIONS if it != "NONE"]),
    st.integers(-5, LARGEST),
    st.binary(max_size=100),
)
def test_any_compressed_bytes_are_read_or_refused(kind: str, size: int, tail: bytes) -> None:
    metadata = pb.ManagedCursorInfoMetadata(
        compressionType=pb.CompressionType.Value(kind), uncompressedSize=min(size, 1 << 20)
    ).SerializeToString()
    value = MAGIC + len(metadata).to_bytes(4) + metadata + tail
    assert isinstance(topic_of(value), TopicInfo | Refusal)
    assert isinstance(cursor_of(value), CursorInfo | Refusal)


@given(st.sampled_from(sorted(COMPRESSIONS)), st.data())
def test_a_flipped_byte_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    value = bytearray(packed(topic_value(*LEDGERS), kind))
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    assert isinstance(topic_of(bytes(value)), TopicInfo | Refusal)
    assert isinstance(cursor_of(bytes(value)), CursorInfo | Refusal)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)), max_size=30),
    st.sampled_from(sorted(COMPRESSIONS)),
)
def test_what_is_written_is_read(sizes: list[tuple[int, int]], kind: str) -> None:
    ledgers = tuple(closed(id, *it) for id, it in enumerate(sizes))
    assert topic_of(packed(topic_value(*ledgers), kind)) == TopicInfo(ledgers)
