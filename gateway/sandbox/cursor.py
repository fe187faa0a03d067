"""How far a subscription is: what is acknowledged, and what is to be delivered next.

All before `mark` is acknowledged, and so are the single offsets in a set. What was delivered and
comes back (a negative acknowledgement, a consumer that went away) waits in a heap, and is taken
before anything that was never delivered.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from gateway.sandbox.log import Log


class Cursor:
    """The place of one subscription in a log; it begins at the offset `start`."""

    def __init__(self, log: Log, start: int) -> None:
        self._log = log
        self.mark = start
        self._read = start
        self._returned: list[int] = []
        self._done: set[int] = set()
        # Of batches that are acknowledged in part: a bit for each message that is not.
        self._left: dict[int, int] = {}

    @property
    def backlog(self) -> int:
        """Entries that are not acknowledged."""
        return self._log.end - self.mark - len(self._done)

    def is_done(self, offset: int) -> bool:
        return offset < self.mark or offset in self._done

    def left(self, offset: int) -> int | None:
        """A bit for each message of a batch that is not acknowledged; None: nothing of it is."""
        return self._left.get(offset)

    # -- acknowledging ---------------------------------------------------------------------------

    def acknowledge(self, offset: int) -> None:
        """One entry."""
        if self.is_done(offset):
            return
        self._left.pop(offset, None)
        self._done.add(offset)
        self._advance()

    def acknowledge_some(self, offset: int, left: int) -> bool:
        """A part of a batch; `left`: a bit for each message that is not. Says if all is done."""
        if not self.is_done(offset):
            left &= self._left.get(offset, left)
            self._left[offset] = left
            if not left:
                self.acknowledge(offset)
        return self.is_done(offset)

    def acknowledge_before(self, offset: int) -> None:
        """All entries in front of one."""
        for done in range(self.mark, offset):
            self._done.discard(done)
            self._left.pop(done, None)
        self.mark = max(self.mark, offset)
        self._advance()

    def _advance(self) -> None:
        while self.mark in self._done:
            self._done.remove(self.mark)
            self.mark += 1

    # -- reading ---------------------------------------------------------------------------------

    def take(self) -> int | None:
        """The next offset to be delivered."""
        while self._returned:
            offset = heappop(self._returned)
            if not self.is_done(offset):
                return offset
        self._read = max(self._read, self.mark)
        while self._read < self._log.end:
            offset, self._read = self._read, self._read + 1
            if not self.is_done(offset):
                return offset
        return None

    def put_back(self, offset: int) -> None:
        """Deliver this again."""
        heappush(self._returned, offset)

    def reset(self, offset: int) -> None:
        """Go to an offset: all before it is acknowledged, and nothing behind it."""
        self.mark = self._read = offset
        self._returned.clear()
        self._done.clear()
        self._left.clear()

    def trim(self) -> None:
        """Forget what the log has forgotten."""
        self.acknowledge_before(self._log.first)
        # What is delivered again and forgotten would pile up where nobody takes it.
        if len(self._returned) > 2 * len(self._log) + 1:
            self._returned = [it for it in self._returned if not self.is_done(it)]
            heapify(self._returned)
