"""What clients owe to the others under a limit, whichever of their accounts made the debt.

An account that passed far more than its part has a tag far ahead of its limit's clock (`limits`),
and waits until the others have had as much. Its client could close it and open another one, or have
many side by side. So the limit remembers each client's *debt* until its clock has passed it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

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


class Owed(Protocol):
    """A limit under which clients owe something. `clock`: see `limits`.

    `debtors`: what each of them owes, None where nobody does. `Debts` writes it.
    """

    @property
    def clock(self) -> float: ...

    debtors: OrderedDict[Hashable, Debt] | None


class Debts:
    """The debts under all limits of a process."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._count = 0
        # What was written longest ago comes first, here and in a limit's `debtors`.
        self._limits: OrderedDict[Owed, None] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def record(self, limit: Owed, client: Hashable, debt: Debt) -> None:
        """Remember what a client owes from now on. Drop what the clock has passed, and the oldest
        beyond the bounds."""
        self._limits[limit] = None
        self._limits.move_to_end(limit)
        debtors = limit.debtors
        if debtors is None:
            debtors = limit.debtors = OrderedDict()
        self._count += client not in debtors
        debtors[client] = debt
        debtors.move_to_end(client)
        while len(debtors) > self._most_of_one or _is_paid(limit, debtors):
            self._drop(debtors)
        while self._count > self._most:
            self._drop_oldest()

    def forget(self, limit: Owed) -> None:
        """Drop a limit that is gone, with its debts."""
        self._limits.pop(limit, None)
        self._count -= len(limit.debtors or ())
        limit.debtors = None

    def _drop(self, debtors: OrderedDict[Hashable, Debt]) -> None:
        debtors.popitem(last=False)
        self._count -= 1

    def _drop_oldest(self) -> None:
        """Drop the oldest client of the limit that was written longest ago."""
        limit = next(iter(self._limits))
        assert limit.debtors is not None
        self._drop(limit.debtors)
        if not limit.debtors:
            self.forget(limit)


def _is_paid(limit: Owed, debtors: OrderedDict[Hashable, Debt]) -> bool:
    """Return whether the oldest of several debts is paid: the limit's clock has passed it."""
    return len(debtors) > 1 and next(iter(debtors.values())).new <= limit.clock
