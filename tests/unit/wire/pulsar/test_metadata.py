"""Message counts in the metadata of MESSAGEs: read at once, or in pieces as they pass."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.account import Account, Action
from gateway.wire.contract import Direction
from gateway.wire.pulsar.to_client import ToClientScanner
from tests.support.commands import ACTIONS
from tests.support.examples import examples
from tests.support.frames import (
    LARGEST,
    TIME,
    data,
    fixed,
    group,
    message,
    metadata_of,
    number,
    tail,
    varint,
)
from tests.support.subjects import subject_of

HEAD = data(1, b"standalone-0-7") + number(2, 300) + number(3, TIME)
LONGEST_CUT = 20
"""A tag and a number of ten bytes each."""

LONGEST_COMMAND = 40
"""Bytes of a MESSAGE before what producers and brokers put behind its command."""

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


class Reading:
    """A scanner that reads MESSAGEs of consumer 1, and the account of that consumer."""

    def __init__(self) -> None:
        self.account = Account(Action.CONSUME, subject_of("a topic"))
        self.scanner = ToClientScanner(ACTIONS[Direction.TO_CLIENT, True], Account(Action.CONSUME))
        self.scanner.open_consumer(1, self.account)
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes, behind those that did not pass."""
        chunk = bytearray(self._rest + piece)
        passed = self.scanner.scan(chunk, 0, len(chunk))
        assert not self.scanner.stop
        self._rest = bytes(chunk[passed:])

    @property
    def waiting(self) -> int:
        """Return how many bytes did not pass."""
        return len(self._rest)


def walked(frame: bytes, cuts: Iterable[int]) -> int:
    """Return the count of a MESSAGE that comes in pieces, which end at `cuts`."""
    reading = Reading()
    for begin, end in pairwise((0, *cuts, len(frame))):
        reading.feed(frame[begin:end])
    assert not reading.waiting
    assert not reading.scanner.owed
    assert reading.account.frames == 1
    assert reading.account.bytes == len(frame)
    return reading.account.messages


def of(metadata: bytes, payload: bytes = b"\x58\x05") -> bytes:
    """Return a MESSAGE. Its payload looks like a count of five."""
    return message(1, tail(metadata, payload))


@every_metadata
def test_count_of_whole_metadata(metadata: bytes, count: int) -> None:
    assert walked(of(metadata), ()) == count


@every_metadata
def test_what_lies_around_is_not_read(metadata: bytes, count: int) -> None:
    for behind in (b"", b"\x80" * 30, b"\x00" * 30):
        assert walked(of(metadata, behind), ()) == count


@every_metadata
def test_a_message_that_is_cut_anywhere_has_the_same_count(metadata: bytes, count: int) -> None:
    frame = of(metadata)
    for at in range(1, len(frame)):
        assert walked(frame, [at]) == count


@every_metadata
def test_a_message_byte_by_byte_has_the_same_count(metadata: bytes, count: int) -> None:
    frame = of(metadata)
    assert walked(frame, range(1, len(frame))) == count


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
def test_cuts_do_not_change_the_count(metadata: bytes, cuts: list[int]) -> None:
    frame = of(metadata)
    assert walked(frame, sorted({at for at in cuts if 0 < at < len(frame)})) == walked(frame, ())


def test_no_metadata_is_kept() -> None:
    piece = number(2, 300) * 10_000
    frame = of(50 * piece)
    reading = Reading()
    for at in range(0, len(frame) - 3, 7001):
        reading.feed(frame[at : at + 7001])
        assert reading.waiting <= LONGEST_CUT


def test_messages_are_counted_when_all_metadata_has_passed() -> None:
    frame = of(number(11, 9) + data(4, bytes(100)), b"")
    reading = Reading()
    reading.feed(frame[:-1])
    assert (reading.account.messages, reading.account.bytes) == (0, len(frame))
    reading.feed(frame[-1:])
    assert (reading.account.messages, reading.account.surplus) == (9, 8)


# -- behind broker entry metadata --------------------------------------------------------------


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_broker_entry_metadata_is_skipped_and_not_kept(piece: int, checksum: bool) -> None:
    metadata = metadata_of(5, num_messages_in_batch=9)
    frame = message(1, tail(metadata, b"payload", checksum=checksum, entry=bytes(20_000)))
    reading = Reading()
    for at in range(0, len(frame), piece):
        reading.feed(frame[at : at + piece])
        assert reading.waiting <= LONGEST_COMMAND
    assert reading.account.messages == 9


@pytest.mark.parametrize("size", [1 << 20, 0xF000_0000, 0xFFFF_FFFA, 0xFFFF_FFFF])
def test_entry_metadata_beyond_its_frame_leaves_the_next_message_alone(size: int) -> None:
    lying = message(1, b"\x0e\x02" + size.to_bytes(4) + bytes(20))
    reading = Reading()
    reading.feed(lying + of(number(11, 9) + HEAD))
    assert not reading.waiting
    assert (reading.account.frames, reading.account.messages) == (2, 10)
