"""Counts what subscriptions have not read, and what they keep from being deleted.

The entries of a topic are numbered across its ledgers, oldest first, from 0. A position becomes the
number of entries up to it, so a backlog is a difference. Positions may lie in ledgers that are
gone, which have no entries any more, and beyond what is known of an open ledger.

A broker deletes ledgers before the first that any subscription still needs. A subscription whose
position is the last entry of a closed ledger does not need that ledger, and the open ledger always
stays. (ManagedLedgerImpl of Pulsar 4, the trimming of consumed ledgers.) Retention can keep ledgers
for longer: what a subscription holds is deleted with it only where none applies.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.pipeline.ledgers.metadata import CursorInfo, LedgerInfo, Position, TopicInfo


class Unread(NamedTuple):
    """What a subscription has not acknowledged. `oldest`: the ledger with its first such entry;
    None: there is no entry."""

    entries: int
    oldest: LedgerInfo | None


class Held(NamedTuple):
    """Ledgers that would go if one subscription went."""

    ledgers: int
    bytes: int


class Shelf:
    """The ledgers of a topic, in the order of their entries."""

    def __init__(self, topic: TopicInfo) -> None:
        self._topic = topic
        self._ids = [it.id for it in topic.ledgers]
        # Entries before each ledger, and behind the last one those of all.
        self._before = [0, *accumulate(it.entries for it in topic.ledgers)]

    @property
    def entries(self) -> int:
        return self._before[-1]

    def number(self, position: Position) -> int:
        """Return how many entries there are up to a position, and with it."""
        at = bisect_left(self._ids, position.ledger)
        if at == len(self._ids) or self._ids[at] != position.ledger:
            return self._before[at]
        inside = min(max(position.entry + 1, 0), self._topic.ledgers[at].entries)
        return self._before[at] + inside

    def unread(self, cursor: CursorInfo) -> Unread | None:
        """Return what a subscription has not acknowledged; None: its position is not known."""
        if cursor.mark is None:
            return None
        start = self.number(cursor.mark)
        count, first = self.entries - start, start
        reached = start  # all up to here is acknowledged or counted
        for after, last in sorted((self.number(a), self.number(b)) for a, b in cursor.deleted):
            begin, end = max(after, reached), last
            if end <= begin:
                continue
            count -= end - begin
            if begin == first:
                first = end
            reached = end
        return Unread(count, self._with(first))

    def _with(self, number: int) -> LedgerInfo | None:
        """Return the ledger with the entry of a number."""
        if number >= self.entries:
            return None
        return self._topic.ledgers[bisect_right(self._before, number) - 1]

    def held(self, cursors: Sequence[CursorInfo]) -> list[Held] | None:
        """Return for each subscription what it alone holds; None: a position is not known."""
        needs: list[int | None] = []
        for cursor in cursors:
            if cursor.mark is None:
                return None
            needs.append(None if cursor.transient else self._first_needed(cursor.mark))
        first = sorted(it for it in needs if it is not None)[:2]
        # Only one that is alone at the lowest place holds anything: up to the next, or the end.
        lowest, following = (*first, len(self._ids), len(self._ids))[:2]
        alone = self._between(lowest, following)
        return [alone if need == lowest else Held(0, 0) for need in needs]

    def _first_needed(self, mark: Position) -> int:
        """Return the place of the first ledger that a subscription needs."""
        at = bisect_left(self._ids, mark.ledger)
        if at == len(self._ids):
            return at
        ledger = self._topic.ledgers[at]
        is_done = (
            ledger.id == mark.ledger
            and ledger.id != self._topic.open_ledger
            and mark.entry + 1 >= ledger.entries
        )
        return at + 1 if is_done else at

    def _between(self, begin: int, end: int) -> Held:
        found = [it for it in self._topic.ledgers[begin:end] if it.id != self._topic.open_ledger]
        return Held(len(found), sum(it.bytes for it in found))
