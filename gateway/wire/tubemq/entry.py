"""The entry to TubeMQ on one listener, by which connections are opened; see `contract.Entry`."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.wire.contract import Denial, Direction, Opening, Origin
from gateway.wire.tubemq.context import Listener
from gateway.wire.tubemq.frames import length
from gateway.wire.tubemq.opening import open_pair
from gateway.wire.tubemq.trace import describe


@dataclass(frozen=True, slots=True)
class TubeEntry:
    """Opens TubeMQ connections of one listener, finds the borders of their frames, and describes
    frames; see `contract.Entry`."""

    listener: Listener

    def frame_length(self, head: bytes | bytearray) -> int:
        """Return the size in bytes of the frame that begins with `head`, or a lower bound of it;
        see `frames.length`. Raises `PeerError` if these bytes begin no frame of TubeMQ."""
        return length(head)

    def open(self, origin: Origin) -> Opening:
        """Return the opening conversation of one new client connection."""
        return open_pair(self.listener, origin)

    def refuse(self, denial: Denial) -> bytes:
        """Return no bytes: in TubeMQ a server sends a frame only in reply to a request."""
        return b""

    def describe(self, direction: Direction, frame: bytes) -> str:
        """Return a description of a frame for traces. It has no signatures and no messages; see
        `trace.describe`."""
        return describe(direction, frame)
