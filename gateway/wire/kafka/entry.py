"""The entry to Kafka on one listener; see `contract.Entry`."""

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
    """See `contract.Entry`."""

    listener: Listener

    def frame_length(self, head: bytes | bytearray) -> int:
        """See `contract.Entry`. The size is read unsigned, so a negative one is refused as too
        large."""
        if len(head) < 4:
            return 0
        total: int = _total(head)[0]
        return total + 4

    def open(self, origin: Origin) -> Opening:
        """See `contract.Entry`."""
        return open_pair(self.listener, origin)

    def refuse(self, denial: Denial) -> bytes:
        """See `contract.Entry`. The protocol has no frame that answers nothing."""
        return b""

    def describe(self, direction: Direction, frame: bytes) -> str:
        """See `contract.Entry`."""
        return describe(direction, frame)
