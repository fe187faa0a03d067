"""Joins the blocks of a frame at which the scanner halts one after the other."""

from __future__ import annotations

from gateway.wire.budget import Quota
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.tubemq.frames import Frame, whole


class Assembly:
    """The unfinished frame of one direction. `largest`: the most bytes that a frame may have.
    `quota`: the memory quota that the collected bytes are counted in."""

    __slots__ = ("_kept", "_largest", "_quota", "_size")

    def __init__(self, largest: int, quota: Quota) -> None:
        self._largest = largest
        self._quota = quota
        self._kept: list[bytes] = []
        self._size = 0  # bytes of these

    @property
    def has_begun(self) -> bool:
        """Return whether blocks of an unfinished frame are kept."""
        return bool(self._kept)

    def take(self, blocks: bytes, missing: int) -> Frame | None:
        """Add the blocks at which the scanner has halted; return the frame if it is whole now, else
        None. `missing`: how many blocks of the frame have not arrived. Raises `PeerError` if the
        frame is too large, or the memory quota has no room for it."""
        if not missing and not self._kept:
            return whole(blocks)
        self._keep(blocks)
        if missing:
            return None
        data = b"".join(self._kept)
        self._quota.give_back(self._size)
        self._kept = []
        self._size = 0
        return whole(data)

    def _keep(self, blocks: bytes) -> None:
        if self._size + len(blocks) > self._largest:
            text = f"a frame of more than {self._largest} bytes"
            raise ViolationError(EndReason.FRAME_TOO_LARGE, text)
        if not self._quota.fits(len(blocks)):
            raise ViolationError(EndReason.OUT_OF_MEMORY, "no room for a frame of several blocks")
        self._quota.take(len(blocks))
        self._kept.append(blocks)
        self._size += len(blocks)
