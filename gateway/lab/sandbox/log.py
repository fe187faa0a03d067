"""Entries of a topic in order, of which the oldest may be evicted.

Inside the sandbox an entry has an *offset*, a number that counts up from zero. Clients know its
*position*: a ledger and an entry in it. As on real brokers, each move begins a new ledger.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from gateway.lab.sandbox.record import Record


class Position(NamedTuple):
    """The position of an entry, as clients know it: a ledger's id, and the number of the entry in
    this ledger; both signed. The position -1, -1 is before all entries."""

    ledger: int
    entry: int


class Log:
    """The entries of a topic, at offsets from `first` up to, not including, `end`. `bytes`: memory
    that the entries take."""

    def __init__(self, ledger: int) -> None:
        self.first = 0
        self.end = 0
        self.bytes = 0
        self._records: dict[int, Record] = {}
        # Ids of the ledgers in use, and the offset of the first entry of each.
        self._ledgers = [ledger]
        self._starts = [0]

    def __len__(self) -> int:
        return self.end - self.first

    def __getitem__(self, offset: int) -> Record:
        return self._records[offset]

    def append(self, record: Record) -> int:
        """Append an entry, and return its offset."""
        offset = self.end
        self._records[offset] = record
        self.bytes += record.cost
        self.end += 1
        return offset

    def evict_oldest(self) -> int:
        """Evict the oldest entry. Return how many bytes of memory it occupied."""
        cost = self._records.pop(self.first).cost
        self.first += 1
        self.bytes -= cost
        return cost

    def begin_ledger(self, ledger: int) -> None:
        """Append later entries to a new ledger. `ledger`: its id, which is larger than all ids
        before."""
        while self._starts and self._starts[-1] == self.end:
            self._drop(-1)
        self._ledgers.append(ledger)
        self._starts.append(self.end)
        while len(self._starts) > 1 and self._starts[1] <= self.first:
            self._drop(0)

    def _drop(self, index: int) -> None:
        del self._ledgers[index], self._starts[index]

    def position(self, offset: int) -> Position:
        """Return the position of the entry at an offset. For an offset before all known entries it
        is entry -1 of the first ledger."""
        index = max(bisect_right(self._starts, offset) - 1, 0)
        return Position(self._ledgers[index], max(offset - self._starts[index], -1))

    def offset(self, position: Position) -> int:
        """Return the offset of the first stored entry at or behind a position; `end` if there is no
        such entry."""
        index = bisect_right(self._ledgers, position.ledger) - 1
        if index < 0:
            return self.first
        limit = self._starts[index + 1] if index + 1 < len(self._starts) else self.end
        if self._ledgers[index] != position.ledger:
            return max(limit, self.first)
        return max(min(self._starts[index] + max(position.entry, 0), limit), self.first)

    def find(self, position: Position) -> int | None:
        """Return the offset of the entry at exactly this position; None if no entry is stored
        there."""
        offset = self.offset(position)
        return offset if offset < self.end and self.position(offset) == position else None

    def since(self, published: int) -> int:
        """Return the offset of the first entry that was published at or after the time `published`
        (milliseconds since 1970); `end` if there is no such entry."""
        for offset in range(self.first, self.end):
            if self._records[offset].published >= published:
                return offset
        return self.end
