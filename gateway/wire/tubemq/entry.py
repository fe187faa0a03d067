"""The entry to TubeMQ on one listener; see `contract.Entry`."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.wire.contract import Denial, Direction, Opening, Origin
from gateway.wire.tubemq.context import Listener
from gateway.wire.tubemq.frames import length
from gateway.wire.tubemq.opening import open_pair
from gateway.wire.tubemq.trace import describe


@dataclass(frozen=True, slots=True)
class TubeEntry:
    """See `contract.Entry`."""

    listener: Listener

    def frame_length(self, head: bytes | bytearray) -> int:
        """See `contract.Entry`."""
        return length(head)

    def open(self, origin: Origin) -> Opening:
        """See `contract.Entry`."""
        return open_pair(self.listener, origin)

    def refuse(self, denial: Denial) -> bytes:
        """See `contract.Entry`. The protocol has no frame that answers nothing."""
        return b""

    def describe(self, direction: Direction, frame: bytes) -> str:
        """See `contract.Entry`."""
        return describe(direction, frame)
