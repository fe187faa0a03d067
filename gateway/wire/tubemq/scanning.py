"""The base of TubeMQ's two scanners, `requests` and `replies`; see `contract.Scanner`.

Frames that are like earlier ones pass (see `alike`); all others stop. The length of a frame is
known only once its last block begins. So the scanner stops at all blocks that have come whole, the
first of them with the frame's head, and `assembly` joins them.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.tubemq.frames import FIRST, HEAD, SIZE, head

START = struct.Struct(">IiII")
"""The first bytes of a frame: token, serial number, number of blocks, length of the first block."""


class BlockScanner(ABC):
    """Scans one direction: passes frames like earlier ones, and halts at the blocks of all others.

    `largest`: the most bytes of a block, and of blocks that stop together. `missing`: the number of
    blocks behind the stop frame that belong to the same frame.
    """

    __slots__ = ("_blocks", "_largest", "missing", "stop")

    skips = 0

    def __init__(self, largest: int) -> None:
        self.stop = 0
        self.missing = 0
        self._largest = largest
        self._blocks = 0  # of the frame under way that have not been decided

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset up to which `chunk[start:end]` may pass; see `contract.Scanner`. Raises
        `PeerError` at an invalid head, or a block that is too large."""
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
        """Stop at the blocks that have come whole; or at the first block, though it is cut."""
        at, blocks, behind = start, self._blocks, 0
        if not blocks:
            blocks = head(chunk, at).blocks
            at += HEAD.size
        left = blocks
        while left and end - at >= SIZE.size:
            (size,) = SIZE.unpack_from(chunk, at)
            if size > self._largest and behind:
                break  # the whole blocks stop, and then this one is refused
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
        """Return 0, since frames pass whole here; a subclass may let them pass in part. See
        `contract.Scanner`."""
        return 0

    @abstractmethod
    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the whole frames at `pos` that are like earlier ones; return the offset behind them,
        or `pos` if none is."""

    @abstractmethod
    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """Return whether the frame at `pos` may pass once its end has come, as far as its first
        bytes tell; at least `FIRST` of them have come. Such a frame is not large."""

    def offer_again(self) -> None:
        """Offer the stop frame again at the next scan, since it was not decided."""
        self.stop = 0
