"""Numbers in received bytes. Compiled readers use the C functions of the same names in
`octets.pxd`; no other code of a reader is written twice. This module itself is never compiled.

Each function reads at an offset of `data`, and the caller has made sure that so many bytes came.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

ALL_64 = (1 << 64) - 1

_U16: Callable[[bytearray, int], tuple[int]] = Struct(">H").unpack_from
_U32: Callable[[bytearray, int], tuple[int]] = Struct(">I").unpack_from
_I16: Callable[[bytearray, int], tuple[int]] = Struct(">h").unpack_from
_I32: Callable[[bytearray, int], tuple[int]] = Struct(">i").unpack_from
_I64: Callable[[bytearray, int], tuple[int]] = Struct(">q").unpack_from

LONGEST_VARINT = 10
"""Bytes of the longest varint: 64 bits, seven in each byte."""


def u16(data: bytearray, at: int) -> int:
    """Return the unsigned big-endian number in two bytes."""
    return _U16(data, at)[0]


def u32(data: bytearray, at: int) -> int:
    """Return the unsigned big-endian number in four bytes."""
    return _U32(data, at)[0]


def i16(data: bytearray, at: int) -> int:
    """Return the signed big-endian number in two bytes."""
    return _I16(data, at)[0]


def i32(data: bytearray, at: int) -> int:
    """Return the signed big-endian number in four bytes."""
    return _I32(data, at)[0]


def i64(data: bytearray, at: int) -> int:
    """Return the signed big-endian number in eight bytes."""
    return _I64(data, at)[0]


def varint(data: bytearray, at: int, end: int) -> tuple[int, int]:
    """Return the varint at `at` as an unsigned number of 64 bits, and the offset behind the varint.
    This offset is -1 if the varint does not end before `end`, and 0 if it has more than ten bytes.
    As in protobuf's decoders, bits above the 64th are ignored."""
    if at < end and data[at] < 128:
        return data[at], at + 1
    value = shift = 0
    last = at + LONGEST_VARINT
    while at < last:
        if at >= end:
            return 0, -1
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & ALL_64, at
        shift += 7
    return 0, 0


def signed(value: int) -> int:
    """Return an unsigned number of 64 bits as a signed one, as numbers of protobuf are."""
    return value - (1 << 64) if value >> 63 else value


def piece(data: bytearray, at: int, end: int) -> bytes:
    """Return the bytes between two offsets."""
    return bytes(data[at:end])


def blank(data: bytearray, at: int, end: int) -> None:
    """Set the bytes between two offsets to zero."""
    data[at:end] = bytes(end - at)


def same(data: bytearray, at: int, end: int, other: bytes) -> bool:
    """Return whether the bytes between two offsets are those of `other`."""
    return end - at == len(other) and data[at:end] == other
