"""Counts the messages of record batches by their heads, without decompression.

A batch of format 2 says in its head how many records it has, and brokers refuse one that says
something else. What is older is counted as one message for each entry: brokers take it from
clients before Kafka 4.0 alone. The broker may end its response within a batch, which a consumer
fetches again, so that is not counted.

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
"""Bytes of an entry up to where its length begins to count."""


_LEAST = HEAD - _AFTER_LENGTH
"""The least length that a batch of format 2 may say that it has."""


class Batches:
    """Counts the messages of `size` bytes of batches, as a `stream.Run`. `whole`: no batch may be
    torn."""

    __slots__ = ("_whole", "left", "messages", "skips")

    def __init__(self, size: int, *, whole: bool) -> None:
        self.left = size
        self.skips = 0
        self.messages = 0
        self._whole = whole
        if size < SHORT:
            self._tear()

    def take(self, chunk: bytearray, at: int, end: int) -> int:
        """See `stream.Run`. Raises `PeerError` if a batch states a length or a count that it cannot
        have, or is torn and must not be."""
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
                self._tear()
        return at

    def _run(self, chunk: bytearray, at: int, end: int) -> int:
        """Count the usual batches that are whole in the chunk, and return the offset behind them.
        The last one of a partition is left to `_entry`. Flat, as a response may have hundreds."""
        began, last = at, min(end, at + self.left - SHORT)
        messages = 0
        while at + HEAD <= last:
            length, format, told = _usual(chunk, at)
            behind = at + length + _AFTER_LENGTH
            if format != FORMAT or told < 0 or length < _LEAST or behind > last:
                break
            messages += told
            at = behind
        self.messages += messages
        self.left -= at - began
        return at

    def _entry(self, chunk: bytearray, at: int, end: int) -> int:
        """Count an entry, and return its length; 0: its head is cut. One that goes on behind the
        last byte was cut by the broker, and is not counted."""
        if end - at < SHORT:
            return 0
        said, format = _head(chunk, at)
        length: int = said + _AFTER_LENGTH
        if length < (HEAD if format == FORMAT else SHORT) and length <= self.left:
            raise PeerError(f"a batch of {said} bytes")
        if length > self.left:
            self._tear()
            return self.left
        if format != FORMAT:
            self.messages += 1
            return length
        if end - at < HEAD:
            return 0
        (told,) = _count(chunk, at)
        if told < 0:
            raise PeerError(f"a batch of {told} messages")
        self.messages += told
        return length

    def _tear(self) -> None:
        """Skip what is left, of which nothing can be counted."""
        if self.left and self._whole:
            raise PeerError("a batch that is torn")
        self.skips = self.left


def counted(frame: bytes, place: Place) -> tuple[int, int]:
    """Return the bytes and the messages of batches that stand at a place of a flexible frame, with
    their compact length before them. Raises `PeerError` if they cannot be."""
    length, at = read_unsigned(frame, place.start, place.end)
    batches = Batches(max(0, length - 1), whole=False)
    batches.take(bytearray(frame[at : place.end]), 0, batches.left)
    return max(0, length - 1), batches.messages
