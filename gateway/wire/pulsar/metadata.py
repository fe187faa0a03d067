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

ENTRY_BOUND = 4 * 1024
"""Broker entry metadata up to this size is waited for: what brokers write has 22 bytes. More of
it, which could only be a producer's, is skipped as it comes."""

LARGE = 8 * 1024
"""Bytes of metadata, or of a command, that are walked without a bound in less than 1 ms."""

_EMPTY_ENTRY = BROKER_ENTRY_MAGIC.to_bytes(2) + bytes(4)
"""The head of broker entry metadata that is empty."""

_HEADS = 8 * 1024
"""Bytes of tags, lengths and numbers that are walked of larger ones: 1 to 2 ms. 2,500 properties
have as many, and clients write the number of messages in front of properties or without any."""

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
        at += 6 + _size(chunk, at + 2)[0]
        if at + 6 > frame_end:
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


def entry_metadata_size(chunk: bytes | bytearray, at: int, end: int) -> int:
    """Return the size of the broker entry metadata behind a command that ends at `at`, with its
    head: 0 where there is none. `end`: of the frame, or of what has come."""
    if at + 6 > end or _magic(chunk, at)[0] != BROKER_ENTRY_MAGIC:
        return 0
    size: int = _size(chunk, at + 2)[0]
    return 6 + size


def metadata_of(frame: bytes) -> memoryview:
    """Return the metadata of a whole SEND or MESSAGE; empty where it has none."""
    end = len(frame)
    found = find_metadata(frame, 8 + HEAD.unpack_from(frame)[1], end, end)
    return memoryview(frame)[slice(*(found or (0, 0)))]


def count_messages(chunk: bytes | bytearray, at: int, end: int) -> int:
    """The count of whole metadata at `chunk[at:end]`."""
    if end - at > LARGE:
        return as_count(walk_large(chunk, at, end, _NUM_MESSAGES, 1)[1])
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


def walk_large(
    chunk: bytes | bytearray, at: int, end: int, wanted: int, value: int, heads: int = _HEADS
) -> tuple[int, int, int]:
    """Do the same as `walk_fields`, and end nowhere beyond `heads` bytes of tags, lengths and
    numbers. Answer in the end how many of these are left.

    Slower by the field, but bounded: a producer may send megabytes of the smallest fields.
    """
    while at < end:
        begin = at
        tag = chunk[at]
        at += 1
        if tag > 127:
            tag, at = read_varint(chunk, begin, end)
            if not 0 < at < NOWHERE:
                return (begin if at < 0 else NOWHERE), value, heads
            tag &= 0xFFFFFFFF
        wire = tag & 7
        if wire == 2 or wire == 0:
            if at < end and (number := chunk[at]) < 128:
                at += 1
            else:
                number, at = read_varint(chunk, at, end)
                if at < 0:
                    return begin, value, heads
        elif wire == 1 or wire == 5:
            number = 8 if wire == 1 else 4
        else:
            return NOWHERE, value, 0
        heads -= at - begin
        if heads < 0:
            return NOWHERE, value, 0
        if wire:
            at += number
        elif tag == wanted and at <= end:
            value = number
    return at, value, heads


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


class EntryWalk:
    """Skips broker entry metadata of any length as its pieces pass, and hands on to a
    `MetadataWalk` behind it. Keeps at most the head of the metadata.

    `size`: of the broker entry metadata, with its head; `frame`: of all behind the command.
    """

    __slots__ = ("_found", "_frame", "_kept", "_skip")

    def __init__(self, size: int, frame: int, found: Callable[[int], object]) -> None:
        self._found = found
        self._skip = size
        self._kept = _EMPTY_ENTRY
        self._frame = len(_EMPTY_ENTRY) + frame - size

    def feed(
        self, chunk: bytes | bytearray, start: int, end: int
    ) -> EntryWalk | MetadataWalk | None:
        """Walk on through `chunk[start:end]`. Return whoever walks on, None at the end."""
        skipped = min(self._skip, end - start)
        self._skip -= skipped
        start += skipped
        kept = self._kept + chunk[start : min(end, start + self._frame - len(self._kept))]
        found = find_metadata(kept, 0, self._frame, len(kept))
        if found is None:
            self._kept = kept
            return self
        begin, metadata_end = found
        return MetadataWalk(metadata_end - begin, self._found).feed(kept, begin, len(kept))


class MetadataWalk:
    """Walks metadata of any length as its pieces pass, keeping at most a cut field's head.

    Call `found(messages)` when the last byte was seen.
    """

    __slots__ = ("_cut", "_found", "_heads", "_left", "_number", "_skip")

    def __init__(self, size: int, found: Callable[[int], object]) -> None:
        self._found = found
        self._left = size
        self._skip = 0
        self._cut = b""
        self._number = 1
        self._heads = _HEADS

    def feed(self, chunk: bytes | bytearray, start: int, end: int) -> MetadataWalk | None:
        """Walk on through `chunk[start:end]`. Answers itself, or None when the end was reached."""
        take = min(end - start, self._left)
        self._left -= take
        skipped = min(self._skip, take)
        self._skip -= skipped
        begin, here = start + skipped, start + take
        if self._cut:
            chunk, begin, here = self._cut + chunk[begin:here], 0, here - begin + len(self._cut)
        at, self._number, self._heads = walk_large(
            chunk, begin, here, _NUM_MESSAGES, self._number, self._heads
        )
        self._skip += max(0, at - here)
        self._cut = bytes(chunk[at:here])
        if self._left:
            return self
        self._found(as_count(self._number))
        return None
