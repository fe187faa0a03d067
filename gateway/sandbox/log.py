"""What a topic holds: its entries in order, of which the oldest may be forgotten.

Inside the sandbox an entry is known by its *offset*: a number that counts up from zero. Outside it
is known by its *position*, a ledger and a number in it. A topic begins a new ledger when it moves
to another broker, as it does on real ones.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from gateway.sandbox.record import Record


class Position(NamedTuple):
    """Both as signed numbers: -1, -1 is before all entries."""

    ledger: int
    entry: int


class Log:
    """Entries at the offsets from `first` on, before `end`; they take `bytes` of memory."""

    def __init__(self, ledger: int) -> None:
        self.first = 0
        self.end = 0
        self.bytes = 0
        self._records: dict[int, Record] = {}
        # Ledgers that still matter, and the offsets of their first entries.
        self._ledgers = [ledger]
        self._starts = [0]

    def __len__(self) -> int:
        return self.end - self.first

    def __getitem__(self, offset: int) -> Record:
        return self._records[offset]

    def append(self, record: Record) -> int:
        """Keep an entry; answers its offset."""
        offset = self.end
        self._records[offset] = record
        self.bytes += record.cost
        self.end += 1
        return offset

    def forget_oldest(self) -> int:
        """Forget the oldest entry; answers the bytes that it took."""
        cost = self._records.pop(self.first).cost
        self.first += 1
        self.bytes -= cost
        return cost

    def begin_ledger(self, ledger: int) -> None:
        """What comes from now on is of another ledger, whose id is larger than those before."""
        while self._starts and self._starts[-1] == self.end:
            self._drop(-1)
        self._ledgers.append(ledger)
        self._starts.append(self.end)
        while len(self._starts) > 1 and self._starts[1] <= self.first:
            self._drop(0)

    def _drop(self, index: int) -> None:
        del self._ledgers[index], self._starts[index]

    def position(self, offset: int) -> Position:
        """Where an offset is; entry -1 of the first ledger for what is before all that is known."""
        index = max(bisect_right(self._starts, offset) - 1, 0)
        return Position(self._ledgers[index], max(offset - self._starts[index], -1))

    def offset(self, position: Position) -> int:
        """The first offset that is there at or behind a position; `end` where there is none."""
        index = bisect_right(self._ledgers, position.ledger) - 1
        if index < 0:
            return self.first
        limit = self._starts[index + 1] if index + 1 < len(self._starts) else self.end
        if self._ledgers[index] != position.ledger:
            return max(limit, self.first)
        return max(min(self._starts[index] + max(position.entry, 0), limit), self.first)

    def find(self, position: Position) -> int | None:
        """The offset of just this position, if it is there."""
        offset = self.offset(position)
        return offset if offset < self.end and self.position(offset) == position else None

    def since(self, published: int) -> int:
        """The first offset of an entry that was published at that time (milliseconds) or later."""
        for offset in range(self.first, self.end):
            if self._records[offset].published >= published:
                return offset
        return self.end
