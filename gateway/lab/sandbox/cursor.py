"""Progress of one subscription: which entries are acknowledged, and which is delivered next.

All entries before `mark_delete` are acknowledged, and so are single offsets in a set. Entries to be
redelivered (after a negative acknowledgement, or when a consumer leaves) are in a heap and go
first.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from gateway.lab.sandbox.log import Log


class Cursor:
    """Which entries of a log one subscription has acknowledged, and which it gets next. `start`:
    the offset at which the subscription begins."""

    def __init__(self, log: Log, start: int) -> None:
        self._log = log
        self.mark_delete = start
        self._read = start
        self._redeliveries: list[int] = []
        self._acknowledged: set[int] = set()
        # Partly acknowledged batches: a bit per unacknowledged message.
        self._ack_sets: dict[int, int] = {}

    @property
    def backlog(self) -> int:
        """Return how many entries are not acknowledged."""
        return self._log.end - self.mark_delete - len(self._acknowledged)

    def is_acknowledged(self, offset: int) -> bool:
        return offset < self.mark_delete or offset in self._acknowledged

    def ack_set(self, offset: int) -> int | None:
        """Return a bit for each message of the batch at an offset: 1 if the message is not
        acknowledged. Return None if no message of the batch is acknowledged."""
        return self._ack_sets.get(offset)

    # -- acknowledging ---------------------------------------------------------------------------

    def acknowledge(self, offset: int) -> None:
        """Acknowledge the entry at an offset."""
        if self.is_acknowledged(offset):
            return
        self._ack_sets.pop(offset, None)
        self._acknowledged.add(offset)
        self._advance()

    def acknowledge_part(self, offset: int, ack_set: int) -> bool:
        """Acknowledge those messages of a batch whose bits in `ack_set` are 0. Return whether all
        messages of the batch are acknowledged now."""
        if not self.is_acknowledged(offset):
            ack_set &= self._ack_sets.get(offset, ack_set)
            self._ack_sets[offset] = ack_set
            if not ack_set:
                self.acknowledge(offset)
        return self.is_acknowledged(offset)

    def acknowledge_before(self, offset: int) -> None:
        """Acknowledge all entries before an offset."""
        for done in range(self.mark_delete, offset):
            self._acknowledged.discard(done)
            self._ack_sets.pop(done, None)
        self.mark_delete = max(self.mark_delete, offset)
        self._advance()

    def _advance(self) -> None:
        while self.mark_delete in self._acknowledged:
            self._acknowledged.remove(self.mark_delete)
            self.mark_delete += 1

    # -- reading ---------------------------------------------------------------------------------

    def take(self) -> int | None:
        """Return the offset of the entry to deliver next; None if there is no entry to deliver."""
        while self._redeliveries:
            offset = heappop(self._redeliveries)
            if not self.is_acknowledged(offset):
                return offset
        self._read = max(self._read, self.mark_delete)
        while self._read < self._log.end:
            offset, self._read = self._read, self._read + 1
            if not self.is_acknowledged(offset):
                return offset
        return None

    def redeliver(self, offset: int) -> None:
        """Queue an entry for redelivery, before entries that were not delivered yet."""
        heappush(self._redeliveries, offset)

    def reset(self, offset: int) -> None:
        """Move the subscription to an offset: entries before this offset are acknowledged then, the
        entry at it and later ones are not."""
        self.mark_delete = self._read = offset
        self._redeliveries.clear()
        self._acknowledged.clear()
        self._ack_sets.clear()

    def trim(self) -> None:
        """Forget entries that the log no longer has, because it has evicted them."""
        self.acknowledge_before(self._log.first)
        # Redeliveries of evicted entries would accumulate while no consumer takes any.
        if len(self._redeliveries) > 2 * len(self._log) + 1:
            self._redeliveries = [
                offset for offset in self._redeliveries if not self.is_acknowledged(offset)
            ]
            heapify(self._redeliveries)
