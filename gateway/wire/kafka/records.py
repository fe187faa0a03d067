"""Counts the messages of record batches by their heads, without decompression.

A batch of format 2 says in its head how many records it has, and brokers refuse one that says
something else. What is older is counted as one message for each entry: brokers take it from
clients before Kafka 4.0 alone. The broker may end its answer within a batch, which a consumer
fetches again, so that is not counted.

Source: the message format of Apache Kafka, and KIP-98.
"""

from __future__ import annotations

import struct

from gateway.errors import PeerError
from gateway.wire.kafka.stream import Read, Reader, Stream, skip
from gateway.wire.kafka.walk import Place, read_unsigned

SHORT = 17
"""Bytes of an entry up to its format: offset (8), length (4), epoch or checksum (4), format (1)."""

HEAD = 61
"""Bytes of the head of a batch of format 2."""

_LENGTH = struct.Struct(">8xi")
_COUNT = struct.Struct(">57xi")
FORMAT = 2


def messages(size: int, *, whole: bool) -> Read:
    """Read `size` bytes of batches, and return the number of their messages.

    `whole`: no batch may be torn. Raises `PeerError` if one is, or says what cannot be.
    """
    count = 0
    while size >= SHORT:
        head = yield SHORT
        rest = _LENGTH.unpack_from(head)[0] + 12 - SHORT
        size -= SHORT
        if rest < 0:
            raise PeerError(f"a batch of {rest + SHORT - 12} bytes")
        if rest > size:
            break
        if head[-1] != FORMAT:
            count += 1
            yield from skip(rest)
        elif rest < HEAD - SHORT:
            raise PeerError(f"a batch of {rest + SHORT - 12} bytes")
        else:
            head += yield HEAD - SHORT
            told = _COUNT.unpack(head)[0]
            if told < 0:
                raise PeerError(f"a batch of {told} messages")
            count += told
            yield from skip(rest - HEAD + SHORT)
        size -= rest
    if size and whole:
        raise PeerError("a batch that is torn")
    yield from skip(size)
    return count


def counted(frame: bytes, place: Place) -> tuple[int, int]:
    """Return the bytes and the messages of batches that stand at a place of a flexible frame, with
    their compact length before them. Raises `PeerError` if they cannot be."""
    length, at = read_unsigned(frame, place.start, place.end)
    size, told = max(0, length - 1), [0]

    def read() -> Reader:
        told[0] = yield from messages(size, whole=False)

    Stream(read(), size).feed(bytearray(frame[at : place.end]), 0, size)
    return size, told[0]
