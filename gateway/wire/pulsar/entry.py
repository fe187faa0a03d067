"""The entry to Pulsar on one listener; see `contract.Entry`."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from gateway.wire.contract import Denial, Direction, Opening, Origin
from gateway.wire.pulsar.commands import NO_REQUEST, error
from gateway.wire.pulsar.context import ListenerContext
from gateway.wire.pulsar.opening import open_pair
from gateway.wire.pulsar.trace import describe

_total = Struct(">I").unpack_from


@dataclass(frozen=True, slots=True)
class PulsarEntry:
    """Opens Pulsar connections on one listener; see `contract.Entry`."""

    listener: ListenerContext

    def frame_length(self, head: bytes | bytearray) -> int:
        """See `contract.Entry`."""
        if len(head) < 4:
            return 0
        total: int = _total(head)[0]
        return total + 4

    def open(self, origin: Origin) -> Opening:
        """See `contract.Entry`."""
        return open_pair(self.listener, origin)

    def refuse(self, denial: Denial) -> bytes:
        """See `contract.Entry`."""
        return error(NO_REQUEST, denial)

    def describe(self, direction: Direction, frame: bytes) -> str:
        """See `contract.Entry`."""
        return describe(frame)
