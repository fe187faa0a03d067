"""The entry to Kafka on one listener, by which connections are opened; see `contract.Entry`."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from gateway.wire.contract import Denial, Direction, Opening, Origin
from gateway.wire.kafka.context import Listener
from gateway.wire.kafka.opening import open_pair
from gateway.wire.kafka.trace import describe

_total = Struct(">I").unpack_from


@dataclass(frozen=True, slots=True)
class KafkaEntry:
    """Opens Kafka connections of one listener, finds the borders of their frames, and describes
    frames; see `contract.Entry`."""

    listener: Listener

    def frame_length(self, head: bytes | bytearray) -> int:
        """Return the size in bytes of the frame that begins with `head`; 0 if the frame's size
        field has not arrived whole. The size is read as an unsigned number, so a negative size is
        refused as too large."""
        if len(head) < 4:
            return 0
        total: int = _total(head)[0]
        return total + 4

    def open(self, origin: Origin) -> Opening:
        """Return the opening conversation of one new client connection."""
        return open_pair(self.listener, origin)

    def refuse(self, denial: Denial) -> bytes:
        """Return no bytes: in Kafka a server sends a frame only in response to a request."""
        return b""

    def describe(self, direction: Direction, frame: bytes) -> str:
        """Return a description of a frame for traces. It has no tokens and no records; see
        `trace.describe`."""
        return describe(direction, frame)
