"""Counts the messages of record batches by the batches' heads, without decompression.

A batch of format 2 states in its head how many records it has, and brokers refuse a batch that
states a wrong number. In older formats each entry counts as one message: only brokers before Kafka
4.0 accept them from clients. A broker may cut off its response within a batch. Consumers fetch that
batch again, so it is not counted.

Source: the message format of Apache Kafka, and KIP-98.
"""

from __future__ import annotations

import struct

from gateway.errors import PeerError
from gateway.wire.kafka.walk import Place, read_unsigned

SHORT = 17
"""Bytes of an entry up to its format: offset (8), length (4), epoch or checksum (4), format (1)."""

HEAD = 61
"""Bytes of the head of a batch of format 2."""

_usual = struct.Struct(">8xi4xb40xi").unpack_from  # length, format, number of messages
_head = struct.Struct(">8xi4xb").unpack_from  # length, format
_count = struct.Struct(">57xi").unpack_from
FORMAT = 2

_AFTER_LENGTH = 12
"""Bytes of an entry before those that its length counts."""


_LEAST = HEAD - _AFTER_LENGTH
"""The least length that a batch of format 2 may state."""


class Batches:
    """Counts the messages in `size` bytes of batches; a `stream.Run`. `whole`: a truncated batch is
    a violation of the protocol; otherwise, a broker may have cut it off."""

    __slots__ = ("_whole", "left", "messages", "skips")

    def __init__(self, size: int, *, whole: bool) -> None:
        self.left = size
        self.skips = 0
        self.messages = 0
        self._whole = whole
        if size < SHORT:
            self._skip_rest()

    def take(self, chunk: bytearray, at: int, end: int) -> int:
        """Count the batches in `chunk[at:end]`; return the offset up to which the bytes may be
        forwarded; see `stream.Run`. Raises `PeerError` if a batch states an impossible length or
        count, or if it is truncated and `whole` was set."""
        while at < end:
            if not self.skips:
                at = self._run(chunk, at, end)
                if at == end:
                    break
                entry = self._entry(chunk, at, end)
                if not entry:
                    break
                self.skips = entry
            step = min(self.skips, end - at)
            self.skips -= step
            self.left -= step
            at += step
            if not self.skips and self.left < SHORT:
                self._skip_rest()
        return at

    def _run(self, chunk: bytearray, at: int, end: int) -> int:
        """Count the usual batches that lie whole in the chunk; return the offset behind them. The
        last batch of a partition is left to `_entry`. Flat, as a response may have hundreds."""
        began, last = at, min(end, at + self.left - SHORT)
        messages = 0
        while at + HEAD <= last:
            length, format, count = _usual(chunk, at)
            behind = at + length + _AFTER_LENGTH
            if format != FORMAT or count < 0 or length < _LEAST or behind > last:
                break
            messages += count
            at = behind
        self.messages += messages
        self.left -= at - began
        return at

    def _entry(self, chunk: bytearray, at: int, end: int) -> int:
        """Count one entry and return its length; 0 if the chunk cuts its head. An entry that goes
        on behind the last byte was cut by the broker, and is not counted."""
        if end - at < SHORT:
            return 0
        stated, format = _head(chunk, at)
        length: int = stated + _AFTER_LENGTH
        if length < (HEAD if format == FORMAT else SHORT) and length <= self.left:
            raise PeerError(f"a batch of {stated} bytes")
        if length > self.left:
            self._skip_rest()
            return self.left
        if format != FORMAT:
            self.messages += 1
            return length
        if end - at < HEAD:
            return 0
        (count,) = _count(chunk, at)
        if count < 0:
            raise PeerError(f"a batch of {count} messages")
        self.messages += count
        return length

    def _skip_rest(self) -> None:
        """Skip the remaining bytes, in which no message can be counted."""
        if self.left and self._whole:
            raise PeerError("a batch that is torn")
        self.skips = self.left


def counted(frame: bytes, place: Place) -> tuple[int, int]:
    """Return the size in bytes of the batches in a field of a frame, and the number of messages in
    them. `place`: where the field is; it begins with a compact length, as in flexible versions.
    Raises `PeerError` if the batches are malformed."""
    length, at = read_unsigned(frame, place.start, place.end)
    batches = Batches(max(0, length - 1), whole=False)
    batches.take(bytearray(frame[at : place.end]), 0, batches.left)
    return max(0, length - 1), batches.messages
