"""Long lists are worked through in slices."""

from __future__ import annotations

import pytest

from gateway.errors import PeerError
from gateway.wire.slices import Slices, finished
from gateway.wire.tubemq.envelopes import LARGE, MOST_FIELDS, MOST_TEXTS, count_fields
from gateway.wire.tubemq.methods import BEAT_BALANCED, BEAT_PARTITIONS, METHODS, SEND_MESSAGE
from gateway.wire.tubemq.slices import AT_ONCE, changed

BEAT = METHODS[BEAT_PARTITIONS].request
SEND = METHODS[SEND_MESSAGE].request


def slices(steps: Slices[object]) -> int:
    """Return how many slices some work has."""
    return 1 + sum(1 for _ in steps)


def test_what_is_changed_at_once_has_one_slice() -> None:
    assert slices(changed(range(AT_ONCE), str)) == 1
    assert slices(changed(range(AT_ONCE + 1), str)) == 2
    assert slices(changed([], str)) == 1


def test_a_list_keeps_what_is_not_none() -> None:
    assert finished(changed(range(250), lambda it: it if it % 2 else None)) == list(
        range(1, 250, 2)
    )


def encoded(count: int, size: int) -> bytes:
    message = BEAT(clientId="c", groupName="g", readStatus=0, partitionInfo=["x" * size] * count)
    data: bytes = message.SerializeToString()
    return data


def test_a_large_message_is_counted_in_slices() -> None:
    small, large = encoded(10, 5), encoded(MOST_TEXTS, 10)
    assert slices(count_fields(BEAT(), small)) == 1
    assert slices(count_fields(BEAT(), large)) > 10


FIELDS = {
    "text": b"\x22\x01x",
    "number": b"\x28\x05",
    "short": b"\x2d1234",
    "long": b"\x2912345678",
    "group": b"\x5b\x5c",
    "long length": b"\x22\x81\x80\x80\x80\x80\x00x",
    "long tag": b"\xa2\x80\x80\x80\x00\x01x",
    "longest number": b"\x28" + b"\xff" * 9 + b"\x01",
}
"""Fields as protobuf reads them."""


@pytest.mark.parametrize("tail", FIELDS.values(), ids=FIELDS)
def test_more_fields_than_any_client_has_are_not_parsed(tail: bytes) -> None:
    data = encoded(1, 1) + tail * 2 * MOST_TEXTS
    assert len(data) > LARGE
    BEAT().ParseFromString(encoded(1, 1) + tail)  # it can be read
    with pytest.raises(PeerError, match=f"more than {MOST_TEXTS + MOST_FIELDS} fields"):
        finished(count_fields(BEAT(), data))


def test_a_message_within_a_message_is_counted_too() -> None:
    inner = b"\x2a\x02x#" * 30_000
    report = b"\x1a" + bytes(
        [len(inner) & 127 | 128, len(inner) >> 7 & 127 | 128, len(inner) >> 14]
    )
    with pytest.raises(PeerError, match="a ClientSubRepInfo with more than"):
        finished(count_fields(METHODS[BEAT_BALANCED].request(), b"\x0a\x01c" + report + inner))


def test_a_large_message_without_lists_has_few_fields_and_no_slices() -> None:
    """What is sent must not be decided in slices: its kind may pass the scanner meanwhile."""
    fields = {"clientId": "c", "topicName": "t", "partitionId": 1, "flag": 0, "checkSum": 1}
    data = SEND(**fields, sentAddr=1, data=bytes(1 << 20)).SerializeToString()
    assert slices(count_fields(SEND(), data)) == 1
    with pytest.raises(PeerError, match="more than 100 fields"):
        finished(count_fields(SEND(), data + b"\x28\x01" * 200))


@pytest.mark.parametrize("cut", [1, 2, 3, 13, 30_001])
def test_a_message_that_is_cut_is_counted_up_to_its_end(cut: int) -> None:
    """Whether it can be read, protobuf says."""
    assert slices(count_fields(BEAT(), encoded(10_000, 10)[:-cut])) > 10


@pytest.mark.parametrize("odd", [b"\xff" * LARGE, b"\x28" + b"\xff" * LARGE, b"\x2e" * LARGE])
def test_what_is_no_field_ends_the_count(odd: bytes) -> None:
    assert slices(count_fields(BEAT(), odd)) == 1
