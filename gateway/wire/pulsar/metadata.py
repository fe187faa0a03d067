"""Reads how many messages an entry holds: `MessageMetadata.num_messages_in_batch`, field 11.

An absent field means one message. The last occurrence counts, as in protobuf. Fields come in any
order, so the metadata is walked to its end.

Metadata comes from the producer, not the broker: a broker hands unreadable metadata on, and
consumers discard it. So nothing in it is a violation. If it cannot be read to its end, the count is
the last one that was read.
"""

from __future__ import annotations

from struct import Struct

from gateway.wire.pulsar.frames import BROKER_ENTRY_MAGIC, CHECKSUM_MAGIC, HEAD

_magic = Struct(">H").unpack_from
_size = Struct(">I").unpack_from

_NUM_MESSAGES = 11 << 3

ENTRY_BOUND = 4 * 1024
"""Bytes of broker entry metadata to wait for; brokers write 22. Larger ones, which only a producer
could have written, are skipped as they pass."""

LARGE = 8 * 1024
"""Bytes of metadata, or of a command, that take less than 1 ms to walk without a bound."""

_EMPTY_ENTRY = BROKER_ENTRY_MAGIC.to_bytes(2) + bytes(4)
"""The head of empty broker entry metadata."""

_HEADS = 8 * 1024
"""Bytes of tags, lengths and numbers to walk in larger metadata, which takes 1 to 2 ms. 2,500
properties have as many, and clients write the number of messages before properties or without any.
"""

NOWHERE = 1 << 64
"""An offset beyond any metadata: nothing more can be read."""


def find_metadata(
    chunk: bytes | bytearray, at: int, frame_end: int, end: int
) -> tuple[int, int] | None:
    """Return the offsets in `chunk` at which the metadata of a SEND or MESSAGE begins and ends;
    None if too few bytes have come to tell.

    `at`: end of the command. `frame_end`: end of the frame. `end`: end of the bytes that have come.
    If the sizes in the frame are wrong, both offsets are equal.
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
    """Return how many bytes broker entry metadata and its head take behind a command that ends at
    `at`; 0 if there is none. `end`: end of the frame, or of the bytes that have come."""
    if at + 6 > end or _magic(chunk, at)[0] != BROKER_ENTRY_MAGIC:
        return 0
    size: int = _size(chunk, at + 2)[0]
    return 6 + size


def metadata_of(frame: bytes) -> memoryview:
    """Return the metadata of a whole SEND or MESSAGE; empty if it has none."""
    end = len(frame)
    place = find_metadata(frame, 8 + HEAD.unpack_from(frame)[1], end, end)
    return memoryview(frame)[slice(*(place or (0, 0)))]


def as_count(number: int) -> int:
    """Return the number of messages that a varint states, read as an int32; 1 if that is no valid
    number of messages."""
    number &= 0xFFFFFFFF
    return number if 0 < number < 1 << 31 else 1


def walk_fields(
    chunk: bytes | bytearray, at: int, end: int, wanted: int, value: int
) -> tuple[int, int]:
    """Walk over the protobuf fields at `chunk[at:end]`, and look for numbers with the tag `wanted`.

    Return the offset at which the walk ended, and the last such number; `value` if there is none.
    The walk ends at `end`; or at the start of a field whose head is truncated (at most 20 bytes
    before `end`); or beyond `end` if a field's content is truncated; or at or beyond `NOWHERE` if
    the bytes are not protobuf. The loop calls few functions, for speed.
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
    """Return the varint at offset `at`, and the offset behind it. This offset is -1 if the varint
    is truncated, and `NOWHERE` if it is invalid."""
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
