"""The scanner of replies whose messages a compiled walker reads while they pass. The pure scanner,
which it is otherwise, judges all other replies, and learns from them."""

from __future__ import annotations

from gateway.compiled.tubemq import ReplyWalker
from gateway.wire.services import Services
from gateway.wire.tubemq.bringing import count_brought
from gateway.wire.tubemq.in_flight import InFlight
from gateway.wire.tubemq.replies import ReplyScanner


class CompiledReplies(ReplyScanner):
    """See `ReplyScanner`."""

    __slots__ = ("walker",)

    def __init__(self, largest: int, in_flight: InFlight, services: Services) -> None:
        self.walker = ReplyWalker(in_flight, services, count_brought)
        super().__init__(largest, in_flight, self.walker)

    def scan(self, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Scanner`."""
        cleared = super().scan(chunk, start, end)
        self.walker.is_armed = not (self.stop or self._blocks)
        return cleared
