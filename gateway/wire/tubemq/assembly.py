"""Puts frames together from their blocks."""

from __future__ import annotations

from typing import NamedTuple

from gateway.wire.budget import Allotment
from gateway.wire.contract import EndReason, ViolationError
from gateway.wire.tubemq.frames import SIZE, head
from gateway.wire.tubemq.scanning import FIRST


class Frame(NamedTuple):
    """A whole frame: its serial number, and its blocks, joined."""

    serial: int
    envelope: bytes


class Assembly:
    """The frame under way of one direction. `largest`: bytes of a frame. `allotment`: takes what is
    kept of it."""

    __slots__ = ("_allotment", "_blocks", "_kept", "_largest", "_serial", "_size")

    def __init__(self, largest: int, allotment: Allotment) -> None:
        self._largest = largest
        self._allotment = allotment
        self._serial = 0
        self._blocks = 0  # that have not come
        self._kept: list[bytes] = []
        self._size = 0  # bytes of these

    def take(self, block: bytes) -> Frame | None:
        """Take a block as the scanner stops at it; return the frame that it completes. Raises
        `PeerError` if the frame is too large, or there is no room for it."""
        if self._blocks:
            self._blocks -= 1
            data = block[SIZE.size :]
        else:
            self._serial, blocks = head(block)
            self._blocks = blocks - 1
            data = block[FIRST:]
            if not self._blocks:
                return Frame(self._serial, data)
        self._keep(data)
        return None if self._blocks else self._whole()

    def _keep(self, data: bytes) -> None:
        if self._size + len(data) > self._largest:
            text = f"a frame of more than {self._largest} bytes"
            raise ViolationError(EndReason.FRAME_TOO_LARGE, text)
        if not self._allotment.fits(len(data)):
            raise ViolationError(EndReason.OUT_OF_MEMORY, "no room for a frame of several blocks")
        self._allotment.take(len(data))
        self._kept.append(data)
        self._size += len(data)

    def _whole(self) -> Frame:
        envelope = b"".join(self._kept)
        self._allotment.give_back(self._size)
        self._kept = []
        self._size = 0
        return Frame(self._serial, envelope)
