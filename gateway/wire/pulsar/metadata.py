"""How many messages an entry holds: `MessageMetadata.num_messages_in_batch`, field 11.

Absent means one. The last occurrence counts, as in protobuf. Fields come in any order, so the
metadata is walked to its end.

Metadata is the producer's, not the broker's: a broker hands on what it cannot read, and consumers
throw it away by themselves. So nothing in it is a violation. Where it cannot be read any further,
the count is what was read so far.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from gateway.wire.pulsar.frames import BROKER_ENTRY_MAGIC, CHECKSUM_MAGIC, HEAD

_magic = Struct(">H").unpack_from
_size = Struct(">I").unpack_from

_NUM_MESSAGES = 11 << 3

_ENTRY_BOUND = 4 * 1024
"""Broker entry metadata up to this size is waited for: what brokers write has 22 bytes. Behind
more of it, which could only be a producer's, no metadata is looked for."""

NOWHERE = 1 << 64
"""An offset beyond any metadata: there is nothing more to be read."""


def find_metadata(
    chunk: bytes | bytearray, at: int, frame_end: int, end: int
) -> tuple[int, int] | None:
    """Return begin and end of the metadata behind a command that ends at `at`; None: not here yet.

    `frame_end`: of the frame of a SEND or MESSAGE; `end`: of what has come. The metadata is empty
    where its sizes lie.
    """
    nowhere = at, at
    if at + 6 > frame_end:
        return nowhere if at <= end else None
    if at + 6 > end:
        return None
    if _magic(chunk, at)[0] == BROKER_ENTRY_MAGIC:
        size = _size(chunk, at + 2)[0]
        at += 6 + size
        if size > _ENTRY_BOUND or at + 6 > frame_end:
            return nowhere
        if at + 6 > end:
            return None
    if _magic(chunk, at)[0] == CHECKSUM_MAGIC:
        at += 6
        if at + 4 > frame_end:
            return nowhere
        if at + 4 > end:
            return None
    begin = at + 4
    metadata_end = begin + _size(chunk, at)[0]
    return (begin, metadata_end) if metadata_end <= frame_end else nowhere


def metadata_of(frame: bytes) -> bytes:
    """Return the metadata of a whole SEND or MESSAGE; empty where it has none."""
    end = len(frame)
    found = find_metadata(frame, 8 + HEAD.unpack_from(frame)[1], end, end)
    return b"" if found is None else frame[slice(*found)]


def count_messages(chunk: bytes | bytearray, at: int, end: int) -> int:
    """The count of whole metadata at `chunk[at:end]`."""
    return as_count(walk_fields(chunk, at, end, _NUM_MESSAGES, 1)[1])


def as_count(number: int) -> int:
    """A message count, from the varint of an int32. What is none is one message."""
    number &= 0xFFFFFFFF
    return number if 0 < number < 1 << 31 else 1


def walk_fields(
    chunk: bytes | bytearray, at: int, end: int, wanted: int, value: int
) -> tuple[int, int]:
    """Walk protobuf fields at `chunk[at:end]`, looking for numbers with the tag `wanted`.

    Answers where it came to an end, and the last such number, `value` where there is none. It ends
    at `end`, or at the begin of a field whose head is cut (at most 20 bytes before `end`), or
    behind `end` where a field's content is cut, or nowhere where it is not protobuf. Flat on
    purpose.
    """
    while at < end:
        begin = at
        tag = chunk[at]
        at += 1
        if tag > 127:
            tag, at = read_varint(chunk, begin, end)
            if at < 0:
                return begin, value
            tag &= 0xFFFFFFFF  # Pulsar's own decoder ignores what is above
        wire = tag & 7
        if wire == 0 and tag != wanted:
            here = at + 10 if at + 10 < end else end
            while at < here and chunk[at] > 127:
                at += 1
            if at == here:
                return (begin if here == end else NOWHERE), value
            at += 1
        elif wire == 2 or wire == 0:
            number, at = read_varint(chunk, at, end)
            if at < 0:
                return begin, value
            if wire == 2:
                at += number
            elif at <= end:
                value = number
        elif wire == 5 or wire == 1:
            at += 4 if wire == 5 else 8
        else:
            return NOWHERE, value
    return at, value


def read_varint(chunk: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """Return a varint and the next offset: -1 where it is cut, `NOWHERE` where it is none."""
    if at < end and chunk[at] < 128:
        return chunk[at], at + 1
    value = shift = 0
    for index in range(at, min(at + 10, end)):
        byte = chunk[index]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, index + 1
        shift += 7
    return 0, -1 if end < at + 10 else NOWHERE


class MetadataWalk:
    """Walks metadata of any length as its pieces pass, keeping at most a cut field's head.

    Call `found(messages)` when the last byte was seen.
    """

    __slots__ = ("_cut", "_found", "_left", "_number", "_skip")

    def __init__(self, size: int, found: Callable[[int], object]) -> None:
        self._found = found
        self._left = size
        self._skip = 0
        self._cut = b""
        self._number = 1

    def feed(self, chunk: bytearray, start: int, end: int) -> MetadataWalk | None:
        """Walk on through `chunk[start:end]`. Answers itself, or None when the end was reached."""
        take = min(end - start, self._left)
        self._left -= take
        skipped = min(self._skip, take)
        self._skip -= skipped
        piece = self._cut + chunk[start + skipped : start + take]
        at, self._number = walk_fields(piece, 0, len(piece), _NUM_MESSAGES, self._number)
        self._skip += max(0, at - len(piece))
        self._cut = piece[at:]
        if self._left:
            return self
        self._found(as_count(self._number))
        return None
