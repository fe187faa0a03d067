"""What clients owe to the others under a limit, whichever of their accounts made the debt.

An account that passed far more than its part has a tag far ahead of its limit's clock (`limits`),
and waits until the others have had as much. Its client could close it and open another one, or have
many side by side. So the limit remembers each client's *debt* until its clock has passed it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gateway.policy.limits import Limit

MOST_OF_ONE = 100
"""Clients that one limit remembers. Whoever has a name has few, and addresses are dear; beyond it
the client that exceeded the limit longest ago is forgotten."""

MOST = 10_000
"""Clients of all limits together: 3 MB with usual names, 30 MB with the longest."""


class Debt(NamedTuple):
    """From which tag a client's accounts go on. `new`: those that it opens. `all`: every one; it
    grows by frames that the limit's meter forgave in part, so that many accounts forgive no more
    than one does."""

    new: float
    all: float


NONE = Debt(float("-inf"), float("-inf"))


class Debts:
    """Of all limits of a process."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._count = 0
        # In both, what was written longest ago comes first.
        self._limits: OrderedDict[Limit, OrderedDict[Hashable, Debt]] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def of(self, limit: Limit, client: Hashable) -> Debt:
        """Return what a client owes at a limit."""
        debts = self._limits.get(limit)
        return NONE if debts is None else debts.get(client, NONE)

    def record(self, limit: Limit, client: Hashable, debt: Debt) -> None:
        """Remember what a client owes from now on. Drop what the clock has passed, and the oldest
        beyond the bounds."""
        debts = self._limits.setdefault(limit, OrderedDict())
        self._limits.move_to_end(limit)
        self._count += client not in debts
        debts[client] = debt
        debts.move_to_end(client)
        while len(debts) > self._most_of_one or self._is_paid(limit, debts):
            self._drop(debts)
        while self._count > self._most:
            self._drop_oldest()

    def forget(self, limit: Limit) -> None:
        """The limit is there no more."""
        self._count -= len(self._limits.pop(limit, ()))

    @staticmethod
    def _is_paid(limit: Limit, debts: OrderedDict[Hashable, Debt]) -> bool:
        """The clock has passed the oldest; the last one is kept in any case."""
        return len(debts) > 1 and next(iter(debts.values())).new <= limit.clock

    def _drop(self, debts: OrderedDict[Hashable, Debt]) -> None:
        debts.popitem(last=False)
        self._count -= 1

    def _drop_oldest(self) -> None:
        """Drop the oldest client of the limit that was written longest ago."""
        limit, debts = next(iter(self._limits.items()))
        self._drop(debts)
        if not debts:
            del self._limits[limit]
