"""Frames: a token, a serial number, the number of blocks, and the blocks, each with its length
before it. The borders between blocks have no meaning: the joined blocks are the envelope
(`envelopes`).

Source: RpcProtocol and the encoders of Apache InLong TubeMQ.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from gateway.errors import PeerError

HEAD = struct.Struct(">IiI")
"""The head of a frame: token, serial number, number of blocks."""

SIZE = struct.Struct(">I")
"""The length field before each block."""

FIRST = HEAD.size + SIZE.size
"""Bytes before the first block."""

TOKEN = 0xFF7FF4FE

MOST_BLOCKS = 3584
"""The most blocks of a frame: servers accept no more, 28 MiB of full ones."""

BLOCK = 8192
"""Bytes of each block that the gateway writes, except the last: clients in C++ accept no larger
ones."""


class Head(NamedTuple):
    """The head of a frame. `serial`: the serial number that the sender of the request has chosen;
    the reply has the same number. `blocks`: the number of blocks."""

    serial: int
    blocks: int


def head(chunk: bytes | bytearray, at: int = 0) -> Head:
    """Return the head of the frame that begins at offset `at`. Raises `PeerError` if no frame
    begins there."""
    token, serial, blocks = HEAD.unpack_from(chunk, at)
    if token != TOKEN:
        raise PeerError("a frame without the token of TubeMQ")
    if not 0 < blocks <= MOST_BLOCKS:
        raise PeerError(f"a frame of {blocks} blocks")
    return Head(serial, blocks)


def length(chunk: bytes | bytearray) -> int:
    """Return the length of the frame at the beginning of the chunk; 0 if the frame's head and first
    length field have not arrived whole. If the length of a later block is not in the chunk yet,
    return a lower bound, which is beyond the end of the chunk. Raises `PeerError` if no frame
    begins there."""
    if len(chunk) < HEAD.size + SIZE.size:
        return 0
    at = HEAD.size
    for _ in range(head(chunk).blocks):
        if len(chunk) < at + SIZE.size:
            return at + SIZE.size + 1
        at += SIZE.size + SIZE.unpack_from(chunk, at)[0]
    return at


class Frame(NamedTuple):
    """A whole frame. `data`: all its bytes. `fits`: each of its blocks is of a size that all
    clients accept."""

    serial: int
    envelope: bytes
    data: bytes
    fits: bool


def whole(data: bytes) -> Frame:
    """Return the frame that consists of these bytes. All blocks of the frame must be there. Raises
    `PeerError` if the bytes are not a frame."""
    serial, blocks = head(data)
    if blocks == 1:
        envelope = data[HEAD.size + SIZE.size :]
        return Frame(serial, envelope, data, 0 < len(envelope) <= BLOCK)
    at, parts, fits, view = HEAD.size, [], True, memoryview(data)
    for _ in range(blocks):
        (size,) = SIZE.unpack_from(data, at)
        at += SIZE.size + size
        parts.append(view[at - size : at])
        fits = fits and 0 < size <= BLOCK
    return Frame(serial, b"".join(parts), data, fits)


def framed(serial: int, envelope: bytes) -> bytes:
    """Return the frame of an envelope, divided into blocks of a size that all clients accept."""
    parts = [HEAD.pack(TOKEN, serial, -(-len(envelope) // BLOCK))]
    for at in range(0, len(envelope), BLOCK):
        block = envelope[at : at + BLOCK]
        parts += (SIZE.pack(len(block)), block)
    return b"".join(parts)
