"""Debts: what clients used beyond their share of a limit, summed over their accounts.

An account that used far more than its share of a limit waits until the other accounts have used as
much: its *tag* is far ahead of the limit's *clock* (see `limits`). Its client could avoid the wait
by closing the account and opening another, or by having many accounts at the same time. So the
limit remembers a *debt* for each client, which is the tag from which its new accounts continue. It
forgets the debt when the limit's clock has passed this tag.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

MOST_OF_ONE = 100
"""Clients that one limit remembers. Nobody has many principals, and addresses are expensive; beyond
it the client that exceeded the limit longest ago is forgotten."""

MOST = 10_000
"""Clients of all limits together: 3 MB with usual names, 30 MB with the longest."""


class LimitWithDebts(Protocol):
    """The attributes of `limits.Limit` that `Debts` uses."""

    debtors: OrderedDict[Hashable, float] | None

    @property
    def clock(self) -> float: ...


class Debts:
    """The debts under all limits of a process. Each limit keeps its debts in `Limit.debtors`, by
    client (None: it has none). `most`: the most debts of all limits together. `most_of_one`: the
    most debts of one limit."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._count = 0
        # The least recently written entry comes first, here and in a limit's `debtors`.
        self._limits: OrderedDict[LimitWithDebts, None] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def record(self, limit: LimitWithDebts, client: Hashable, debt: float) -> None:
        """Set the debt of a client under a limit. Also drop the oldest debts: those whose tags the
        limit's clock has passed, and those beyond the bounds."""
        self._limits[limit] = None
        self._limits.move_to_end(limit)
        debtors = limit.debtors
        if debtors is None:
            debtors = limit.debtors = OrderedDict()
        self._count += client not in debtors
        debtors[client] = debt
        debtors.move_to_end(client)
        while len(debtors) > self._most_of_one or (
            len(debtors) > 1 and next(iter(debtors.values())) <= limit.clock
        ):
            self._drop_first(debtors)
        while self._count > self._most:
            self._drop_oldest()

    def forget(self, limit: LimitWithDebts) -> None:
        """Drop all debts under a limit, because the limit no longer exists."""
        self._limits.pop(limit, None)
        self._count -= len(limit.debtors or ())
        limit.debtors = None

    def _drop_first(self, debtors: OrderedDict[Hashable, float]) -> None:
        debtors.popitem(last=False)
        self._count -= 1

    def _drop_oldest(self) -> None:
        """Drop the oldest client of the limit that was written longest ago."""
        limit = next(iter(self._limits))
        assert limit.debtors is not None
        self._drop_first(limit.debtors)
        if not limit.debtors:
            self.forget(limit)
