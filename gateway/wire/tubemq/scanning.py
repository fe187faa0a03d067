"""What the scanners of both directions share: `requests` and `replies`; see `contract.Scanner`.

Frames that are like earlier ones pass (see `alike`); all others are decided. How long a frame is
stands before its last block alone, so nobody can know it in advance. So those of its blocks stop
together that have come whole, the first ones with the frame's head, and `assembly` puts the frame
together.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.tubemq.frames import FIRST, HEAD, SIZE, head

START = struct.Struct(">IiII")
"""The first bytes of a frame: token, serial number, number of blocks, length of the first."""


class BlockScanner(ABC):
    """`largest`: bytes of a block, and of those that stop together. `missing`: blocks of the stop
    frame's frame that come behind it."""

    __slots__ = ("_blocks", "_largest", "missing", "stop")

    skips = 0

    def __init__(self, largest: int) -> None:
        self.stop = 0
        self.missing = 0
        self._largest = largest
        self._blocks = 0  # of the frame under way that have not been decided

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`. Raises `PeerError` at a head that is none, or a large block."""
        if self.stop and start < end:
            self._blocks = self.missing
            self.stop = 0
        if not self._blocks:
            start = self._run(chunk, start, end)
            if end - start < FIRST or self._waits(chunk, start, end):
                return start
        self._stop(chunk, start, end)
        return start

    def _stop(self, chunk: bytearray, start: int, end: int) -> None:
        """Stop at the blocks that have come whole; at one that is cut if it is the first."""
        at, blocks, behind = start, self._blocks, 0
        if not blocks:
            blocks = head(chunk, at).blocks
            at += HEAD.size
        left = blocks
        while left and end - at >= SIZE.size:
            (size,) = SIZE.unpack_from(chunk, at)
            if size > self._largest and behind:
                break  # what has come whole stops, and then this is refused
            if size > self._largest:
                raise ViolationError(EndReason.FRAME_TOO_LARGE, f"a block of {size} bytes")
            at += SIZE.size + size
            if behind and (at > end or at - start > self._largest):
                break
            behind = at
            left -= 1
        if behind:
            self.stop = behind - start
            self.missing = left

    @property
    def owed(self) -> int:
        """See `contract.Scanner`. Frames pass whole, unless the scanner says otherwise."""
        return 0

    @abstractmethod
    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the whole frames at `pos` that are like earlier ones, and return the offset behind
        them; `pos` if none is."""

    @abstractmethod
    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """Return whether the frame at `pos` may pass when its end has come, as far as its `FIRST`
        bytes or more tell. Then it is not large."""

    def offer_again(self) -> None:
        """Have the stop frame offered again: it was not decided."""
        self.stop = 0
