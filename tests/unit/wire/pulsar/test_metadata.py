"""Message counts in metadata: walked at once, or in pieces as it passes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.account import Account, Action
from gateway.wire.pulsar.metadata import EntryWalk, MetadataWalk, count_messages
from tests.support.examples import examples
from tests.support.frames import (
    LARGEST,
    TIME,
    data,
    fixed,
    group,
    metadata_of,
    number,
    tail,
    varint,
)
from tests.support.subjects import subject_of

HEAD = data(1, b"standalone-0-7") + number(2, 300) + number(3, TIME)
LONGEST_CUT = 20
"""A tag and a number of ten bytes each."""

COUNTED = [
    ("no count", HEAD, 1),
    ("nothing", b"", 1),
    ("a count", HEAD + number(11, 9), 9),
    ("a count in front", number(11, 9) + HEAD, 9),
    ("the last of two", number(11, 9) + HEAD + number(11, 4), 4),
    ("zero", HEAD + number(11, 0), 1),
    ("negative", HEAD + number(11, LARGEST), 1),
    ("negative in 32 bits", HEAD + number(11, 1 << 31), 1),
    ("negative behind a count", HEAD + number(11, 9) + number(11, LARGEST), 1),
    ("the largest", HEAD + number(11, (1 << 31) - 1), (1 << 31) - 1),
    ("more than 32 bits", HEAD + number(11, (7 << 32) + 9), 9),
    ("padded", HEAD + number(11, 9, 10, tag_width=5), 9),
    ("a tag of more than 32 bits", HEAD + varint((1 << 32) + (11 << 3)) + b"\x09", 9),
    ("within a property", HEAD + data(4, number(11, 9)), 1),
    ("within a fixed number", HEAD + fixed(40, number(11, 9) * 2) + fixed(40, bytes(8)), 1),
    ("of another kind", HEAD + data(11, number(11, 9)) + fixed(11, bytes(4)), 1),
    ("behind fields above 15", HEAD + data(16, b"x") + number(1 << 28, 5) + number(11, 9), 9),
    ("a batch as clients write it", metadata_of(5, num_messages_in_batch=9, event_time=TIME), 9),
]

UNREADABLE = [
    ("a group", HEAD + number(11, 9) + group(10) + number(11, 7), 9),
    ("a reserved kind", HEAD + number(11, 9) + b"\x07" + number(11, 7), 9),
    ("a tag that is cut", HEAD + number(11, 9) + b"\xd8", 9),
    ("a tag without a number", HEAD + number(11, 9) + b"\x58", 9),
    ("a count that is cut", HEAD + number(11, 9) + b"\x58\x87", 9),
    ("a number of eleven bytes", HEAD + number(11, 9) + number(2, 1, 11) + number(11, 7), 9),
    ("a count of eleven bytes", HEAD + number(11, 9) + number(11, 7, 11) + number(11, 7), 9),
    ("a tag of eleven bytes", HEAD + number(11, 9) + number(2, 1, tag_width=11) + number(11, 7), 9),
    ("a number that never ends", HEAD + number(11, 9) + b"\x10" + b"\xff" * 60, 9),
    ("a count that never ends", HEAD + number(11, 9) + b"\x58" + b"\xff" * 60, 9),
    ("a tag that never ends", HEAD + number(11, 9) + b"\xff" * 60, 9),
    ("a field that reaches beyond", HEAD + number(11, 9) + b"\x22\x7f" + number(11, 7), 9),
    ("a field of 4 GB", HEAD + number(11, 9) + b"\x22\xff\xff\xff\xff\x0f" + number(11, 7), 9),
    ("a length of eleven bytes", HEAD + number(11, 9) + data(4, b"", 11) + number(11, 7), 9),
    ("a fixed number that is cut", HEAD + number(11, 9) + b"\x2d\x58\x07", 9),
]

every_metadata = pytest.mark.parametrize(
    ("metadata", "count"),
    [pytest.param(metadata, count, id=name) for name, metadata, count in COUNTED + UNREADABLE],
)


def walked(pieces: list[bytes], size: int) -> int:
    """Return the count of a walk through these pieces. Bytes behind the last one are not walked."""
    account = Account(Action.CONSUME, subject_of("a topic"))
    walk: MetadataWalk | None = MetadataWalk(size, account.count)
    for left, piece in zip(reversed(range(len(pieces))), pieces, strict=True):
        assert walk is not None
        chunk = bytearray(b"\x58\x05" + piece + b"\x58\x05")
        walk = walk.feed(chunk, 2, len(chunk) - 2 if left else len(chunk))
        assert walk is None or len(walk._cut) <= LONGEST_CUT
    assert walk is None
    assert account.surplus == account.messages - 1
    return account.messages


@every_metadata
def test_count_of_whole_metadata(metadata: bytes, count: int) -> None:
    assert count_messages(metadata, 0, len(metadata)) == count


@every_metadata
def test_what_lies_around_is_not_read(metadata: bytes, count: int) -> None:
    for around in (b"\x58\x05", b"\x80" * 30, b"\x00" * 30):
        chunk = bytearray(around + metadata + around)
        assert count_messages(chunk, len(around), len(around) + len(metadata)) == count


@every_metadata
def test_a_walk_that_is_cut_anywhere_finds_the_same(metadata: bytes, count: int) -> None:
    for at in range(1, len(metadata)):
        assert walked([metadata[:at], metadata[at:]], len(metadata)) == count


@every_metadata
def test_a_walk_byte_by_byte_finds_the_same(metadata: bytes, count: int) -> None:
    if metadata:
        assert walked([metadata[n : n + 1] for n in range(len(metadata))], len(metadata)) == count


fields = st.one_of(
    st.builds(number, st.integers(1, 40), st.integers(0, LARGEST), st.integers(0, 10)),
    st.builds(number, st.just(11), st.integers(0, 1 << 33), st.integers(0, 10), st.integers(0, 5)),
    st.builds(data, st.integers(1, 40), st.binary(max_size=40), st.integers(0, 5)),
    st.builds(fixed, st.integers(1, 40), st.sampled_from([bytes(4), b"\x58\x05" * 4])),
    st.binary(max_size=3),
)


@examples(250)
@given(
    metadata=st.lists(fields, min_size=1, max_size=10).map(b"".join).filter(bool),
    cuts=st.lists(st.integers(0, 400), max_size=10),
)
def test_a_walk_and_a_count_agree(metadata: bytes, cuts: list[int]) -> None:
    borders = sorted({0, len(metadata), *(at for at in cuts if at < len(metadata))})
    pieces = [metadata[a:b] for a, b in pairwise(borders)]
    assert walked(pieces, len(metadata)) == count_messages(metadata, 0, len(metadata))


def test_a_walk_keeps_nothing_of_what_it_has_seen() -> None:
    account = Account(Action.CONSUME, subject_of("a topic"))
    piece = bytearray(number(2, 300) * 10_000)
    walk: MetadataWalk | None = MetadataWalk(50 * len(piece), account.count)
    for _ in range(49):
        assert walk is not None
        walk = walk.feed(piece, 0, len(piece))
        assert walk is not None
        assert len(walk._cut) <= LONGEST_CUT
        assert account.messages == 0


def test_the_messages_are_booked_when_all_of_it_has_passed() -> None:
    account = Account(Action.CONSUME, subject_of("a topic"))
    metadata = bytearray(number(11, 9) + data(4, bytes(100)))
    walk = MetadataWalk(len(metadata), account.count).feed(metadata, 0, len(metadata) - 1)
    assert walk is not None
    assert account.messages == 0
    assert walk.feed(metadata, len(metadata) - 1, len(metadata)) is None
    assert (account.messages, account.surplus) == (9, 8)


# -- behind broker entry metadata --------------------------------------------------------------

LONGEST_KEPT = 16
"""The head of empty broker entry metadata, and the head of the metadata behind it."""


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_broker_entry_metadata_is_skipped_and_not_kept(piece: int, checksum: bool) -> None:
    metadata = metadata_of(5, num_messages_in_batch=9)
    rest = tail(metadata, b"payload", checksum=checksum, entry=bytes(20_000))
    account = Account(Action.CONSUME, subject_of("a topic"))
    walk: EntryWalk | MetadataWalk | None = EntryWalk(20_006, len(rest), account.count)
    for at in range(0, len(rest), piece):
        if walk is not None:
            walk = walk.feed(bytearray(rest), at, min(at + piece, len(rest)))
        assert not isinstance(walk, EntryWalk) or len(walk._kept) < LONGEST_KEPT
    assert walk is None
    assert account.messages == 9
