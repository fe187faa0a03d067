"""The scanner of both directions; see `contract.Scanner`. Nothing passes it: each frame is decided.

How long a frame is stands before its last block alone, so nobody can know it in advance. A frame of
one block, as nearly all are, stops whole. Of others each block stops by itself, the first together
with the frame's head, and `assembly` puts them together.
"""

from __future__ import annotations

from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.tubemq.frames import HEAD, SIZE, head

FIRST = HEAD.size + SIZE.size
"""Bytes before the first block."""


class BlockScanner:
    """`largest`: bytes of a block."""

    __slots__ = ("_blocks", "_blocks_behind", "_largest", "stop")

    owed = 0
    skips = 0

    def __init__(self, largest: int) -> None:
        self.stop = 0
        self._largest = largest
        self._blocks = 0  # of the frame under way that have not come
        self._blocks_behind = 0  # the same, behind the stop frame

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. Raises `PeerError` at a head that is none, or a large block."""
        if start == end:
            return start
        if self.stop:
            self._blocks = self._blocks_behind
            self.stop = 0
        blocks, before = self._blocks, SIZE.size
        if not blocks:
            if end - start < HEAD.size:
                return start
            blocks, before = head(chunk, start).blocks, FIRST
        if end - start < before:
            return start
        (size,) = SIZE.unpack_from(chunk, start + before - SIZE.size)
        if size > self._largest:
            raise ViolationError(EndReason.FRAME_TOO_LARGE, f"a block of {size} bytes")
        self.stop = before + size
        self._blocks_behind = blocks - 1
        return start

    def offer_again(self) -> None:
        """Have the stop frame offered again: it was not decided."""
        self.stop = 0
