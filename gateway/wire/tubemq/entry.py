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
    """Opens, frames and describes TubeMQ connections of one listener; see `contract.Entry`."""

    listener: Listener

    def frame_length(self, head: bytes | bytearray) -> int:
        """Return the bytes of the frame that begins with `head`, as far as they are known; see
        `frames.length`. Raises `PeerError` if it is no frame of TubeMQ."""
        return length(head)

    def open(self, origin: Origin) -> Opening:
        """Return the opening conversation of one new client connection."""
        return open_pair(self.listener, origin)

    def refuse(self, denial: Denial) -> bytes:
        """Return no bytes: TubeMQ has no frame that a client gets without a request."""
        return b""

    def describe(self, direction: Direction, frame: bytes) -> str:
        """Return a description of a frame for traces, without signatures and messages; see
        `trace.describe`."""
        return describe(direction, frame)
