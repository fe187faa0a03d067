"""Splits, checks, places and reads record batches of format 2.

Batches are kept as bytes, as producers sent them: their checksum does not cover the first offset
and the leader's epoch, which a broker writes.

Source: the message format of Apache Kafka, and KIP-98.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import crc32c

from gateway.wire.kafka.pieces import FORMAT, HEAD, SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BATCH = 1_048_588
"""Bytes of a batch, the default of brokers (`message.max.bytes`)."""

MOST_UNPACKED = 16 * 1024 * 1024
"""Bytes of a batch after decompression, for those who look at what was produced."""

MOST_RECORDS = 100_000
"""Records of a batch: the largest batch has place for no more of any use."""

ZSTD = 4
_CODEC = 7
_GZIP = 1
_CONTROL, _TRANSACTIONAL = 32, 16

_LENGTH = struct.Struct(">8xi")
_FIELDS = struct.Struct(">q9xIhiqqqhii")
_EPOCH_AT = 12
_CHECKED_AT = 21
"""The offset from which a batch is covered by its checksum."""

_ZIGZAG_BITS = 70
"""Bits of the longest varint: ten bytes of seven."""


class UnreadableError(ValueError):
    """The records of a batch cannot be read: they are truncated, or compressed by a codec that is
    not installed."""


class Batch(NamedTuple):
    """One record batch. `base`: the offset of its first record; `last_delta`: the offset of its
    last record, relative to `base`. `is_special`: the batch is part of a transaction, or a control
    batch. Times are in milliseconds. `producer`: the producer's id; if it is -1, `epoch` and
    `sequence` mean nothing. `data`: the bytes of the whole batch."""

    base: int
    codec: int
    is_special: bool
    last_delta: int
    first_time: int
    last_time: int
    producer: int
    epoch: int
    sequence: int
    record_count: int
    data: bytes

    @property
    def end(self) -> int:
        """Return the offset after the batch's last record."""
        return self.base + self.last_delta + 1

    def placed(self, base: int, leader_epoch: int) -> Batch:
        """Return this batch with the first offset `base`, and with the epoch of the leader that
        stores it."""
        head = struct.pack(">q", base) + self.data[8:_EPOCH_AT] + struct.pack(">i", leader_epoch)
        return self._replace(base=base, data=head + self.data[len(head) :])


class Record(NamedTuple):
    """One record of a batch. `time`: its timestamp, in milliseconds."""

    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def split(data: bytes) -> list[bytes] | None:
    """Split `data` into its batches, each as bytes; return None if a batch is truncated."""
    batches, at = [], 0
    while at < len(data):
        if len(data) - at < SHORT:
            return None
        until = at + 12 + int(_LENGTH.unpack_from(data, at)[0])
        if not at + SHORT <= until <= len(data):
            return None
        batches.append(data[at:until])
        at = until
    return batches


def format_of(data: bytes) -> int:
    """Return the number of the format (`magic`) that a batch has."""
    return data[SHORT - 1]


def parse(data: bytes) -> Batch | None:
    """Decode a batch; return None if it does not have format 2, or if its checksum is wrong."""
    if len(data) < HEAD or format_of(data) != FORMAT:
        return None
    base, checksum, attributes, *fields = _FIELDS.unpack_from(data)
    if crc32c.crc32c(data[_CHECKED_AT:]) != checksum:
        return None
    is_special = bool(attributes & (_CONTROL | _TRANSACTIONAL))
    return Batch._make((base, attributes & _CODEC, is_special, *fields, data))


def records(batch: Batch) -> Iterator[Record]:
    """Yield the records of a batch. Raises `UnreadableError` if they cannot be read."""
    reader = _Reader(_unpacked(batch))
    for _ in range(min(batch.record_count, MOST_RECORDS)):
        reader.varint()  # the length of the record
        reader.take(1)  # its attributes, of which there are none
        time = batch.first_time + reader.varint()
        offset = batch.base + reader.varint()
        key, value = reader.sized(), reader.sized()
        yield Record(offset, time, key, value, tuple(_headers(reader)))


def _headers(reader: _Reader) -> Iterator[tuple[str, bytes | None]]:
    for _ in range(reader.varint()):
        name = reader.sized() or b""
        yield name.decode(errors="replace"), reader.sized()


def _unpacked(batch: Batch) -> bytes:
    """Return the records of a batch without compression."""
    packed = batch.data[HEAD:]
    if not batch.codec:
        return packed
    if batch.codec != _GZIP:
        raise UnreadableError(f"a batch of compression {batch.codec}, which is not read here")
    try:
        return zlib.decompressobj(wbits=31).decompress(packed, MOST_UNPACKED)
    except zlib.error as error:
        raise UnreadableError("a batch that does not decompress") from error


class _Reader:
    """Reads the parts of records."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._data):
            raise UnreadableError("a record that is torn")
        return self._data[start : self._at]

    def varint(self) -> int:
        """Read a signed number (zigzag varint), and return it."""
        number = 0
        for shift in range(0, _ZIGZAG_BITS, 7):
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return number >> 1 ^ -(number & 1)
        raise UnreadableError("a number that does not end")

    def sized(self) -> bytes | None:
        """Read a length and then that many bytes. Return the bytes; None for a negative length."""
        length = self.varint()
        return None if length < 0 else self.take(length)
