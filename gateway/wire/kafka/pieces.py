# cython: annotation_typing=False, boundscheck=False, wraparound=False
# cython: initializedcheck=False, cdivision=True
"""Reads the parts of frames that both scanners meet: lengths, and the heads of record batches.

A batch of format 2 states in its head how many records it has, and brokers refuse a batch that
states a wrong number. In older formats each entry counts as one message, also a compressed one,
which has several: only brokers before Kafka 4.0 accept them from clients.

Source: the protocol guide of Apache Kafka; its message format, and KIP-98.
"""

from __future__ import annotations

from gateway.wire import octets

_COMPACT = 0
_LONGEST = (1 << 31) - 1

SHORT = 17
"""Bytes of an entry up to its format: offset (8), length (4), epoch or checksum (4), format (1)."""

HEAD = 61
"""Bytes of the head of a batch of format 2."""

FORMAT = 2
"""The format of batches with such a head, the latest one."""

_SHORT = SHORT
_FORMAT = FORMAT
_HEAD = HEAD
DENSEST = 100
"""Messages that count for each byte of a batch at most. One takes 7 bytes, before all of a batch
are compressed."""

MOST = 1_000_000
"""Messages that count of one batch at most. A client could state 2³¹, for which all others under
its limit would wait."""

_DENSEST = DENSEST
_MOST = MOST
_LENGTH_AT = 8
_FORMAT_AT = 16
_COUNT_AT = 57
_AFTER_LENGTH = 12
"""Bytes of an entry before those that its length counts."""


def length(data: bytearray, at: int, end: int, size: int) -> tuple[int, int]:
    """Return the length of a text or array, which stands at `at`, and the offset behind the length.
    A null has the length -1. The offset is 0 if `end` cuts the length, and -1 if no text can be as
    long. `size`: bytes of the length; 0: it is compact."""
    if size == _COMPACT:
        value, behind = octets.varint(data, at, end)
        if behind < 0:
            return 0, 0
        if behind == 0 or behind > at + 5 or value > _LONGEST:
            return 0, -1
        return value - 1, behind
    if end - at < size:
        return 0, 0
    stated = octets.i32(data, at) if size == 4 else octets.i16(data, at)
    if stated < -1:
        return 0, -1
    return stated, at + size


def batch(data: bytearray, at: int, end: int, left: int) -> tuple[int, int]:
    """Return the size in bytes of the batch at `at`, and the number of its messages. The size is 0
    if `end` cuts the batch's head, and -1 if the head is impossible. It is above `left`, how many
    bytes the field still has, if the batch is torn."""
    if left < _SHORT:
        return _SHORT, 0
    if end - at < _SHORT:
        return 0, 0
    stated = octets.i32(data, at + _LENGTH_AT)
    stated += _AFTER_LENGTH
    is_latest = data[at + _FORMAT_AT] == _FORMAT
    if stated < (_HEAD if is_latest else _SHORT):
        return -1, 0
    if stated > left:
        return stated, 0
    if not is_latest:
        return stated, 1
    if end - at < _HEAD:
        return 0, 0
    messages = octets.i32(data, at + _COUNT_AT)
    if messages < 0:
        return -1, 0
    most = _DENSEST * stated if stated < _MOST // _DENSEST else _MOST
    return stated, messages if messages < most else most
