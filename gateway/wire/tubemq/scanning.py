"""The base of TubeMQ's two scanners, `requests` and `replies`; see `contract.Scanner`.

Frames that are like earlier frames pass (see `alike`). At any other frame the scanner halts. The
length of a frame is known only when its last block begins. So the scanner does not wait for the
whole frame: it halts at the blocks that have arrived whole, the frame's head included, and again at
later blocks; `assembly` joins all blocks.
"""

from __future__ import annotations

import struct

from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.scanner import BaseScanner
from gateway.wire.tubemq.frames import FIRST, HEAD, SIZE, head

START = struct.Struct(">IiII")
"""The first bytes of a frame: token, serial number, number of blocks, length of the first block."""


class BlockScanner(BaseScanner):
    """Scans one direction of a connection: frames that are like earlier frames pass, and at the
    blocks of any other frame the scanner halts.

    `largest`: the most bytes of one block, and of the blocks at which the scanner halts together.
    `missing`: how many blocks of the same frame come after these.
    """

    __slots__ = ("_blocks", "_largest", "missing")

    def __init__(self, largest: int) -> None:
        super().__init__()
        self.missing = 0
        self._largest = largest
        self._blocks = 0  # of the frame under way that have not been decided

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """Return the offset up to which `chunk[start:end]` may be forwarded; see
        `contract.Scanner`. Raises `PeerError` if a frame's head is invalid, or a block is too
        large."""
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

    def _run(self, chunk: bytearray, pos: int, end: int) -> int:
        """Pass the whole frames at `pos` that are like earlier ones; return the offset behind them,
        or `pos` if none is."""
        raise NotImplementedError

    def _waits(self, chunk: bytearray, pos: int, end: int) -> bool:
        """Return whether the frame at `pos` may pass once its end has come, as far as its first
        bytes tell; at least `FIRST` of them have come. Such a frame is not large."""
        raise NotImplementedError

    def offer_again(self) -> None:
        """Make the next scan halt at the same blocks again, because the session has not decided
        them."""
        self.stop = 0
