"""Debts of clients to the other clients under a limit, whichever of their accounts made them.

An account that passed far more than its share has a tag far ahead of its limit's clock (see
`limits`), and waits until the others have had as much. Its client could escape by closing the
account and opening another one, or by having many side by side. So the limit remembers each
client's *debt*, the tag from which its accounts continue, until the limit's clock has passed it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

MOST_OF_ONE = 100
"""Clients that one limit remembers. Nobody has many principals, and addresses are expensive; beyond
it the client that exceeded the limit longest ago is forgotten."""

MOST = 10_000
"""Clients of all limits together: 3 MB with usual names, 30 MB with the longest."""


class Debt(NamedTuple):
    """The least tags of a client's accounts: of those that it opens, and of all its accounts. The
    latter grows by frames that the limit's meter forgave in part, so that many accounts are
    forgiven no more than one."""

    new_accounts: float
    all_accounts: float


NO_DEBT = Debt(float("-inf"), float("-inf"))


class LimitWithDebts(Protocol):
    """The part of `limits.Limit` that is needed here."""

    debtors: OrderedDict[Hashable, Debt] | None

    @property
    def clock(self) -> float: ...


class Debts:
    """The debts under all limits of a process. It writes `Limit.debtors`: the debt of each client,
    None where there is none."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._count = 0
        # The least recently written entry comes first, here and in a limit's `debtors`.
        self._limits: OrderedDict[LimitWithDebts, None] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def record(self, limit: LimitWithDebts, client: Hashable, debt: Debt) -> None:
        """Set the debt of a client. Drop the oldest debts beyond the bounds, and those that the
        limit's clock has passed."""
        self._limits[limit] = None
        self._limits.move_to_end(limit)
        debtors = limit.debtors
        if debtors is None:
            debtors = limit.debtors = OrderedDict()
        self._count += client not in debtors
        debtors[client] = debt
        debtors.move_to_end(client)
        while len(debtors) > self._most_of_one or (
            len(debtors) > 1 and next(iter(debtors.values())).new_accounts <= limit.clock
        ):
            self._drop_first(debtors)
        while self._count > self._most:
            self._drop_oldest()

    def forget(self, limit: LimitWithDebts) -> None:
        """Drop a limit that is gone, with its debts."""
        self._limits.pop(limit, None)
        self._count -= len(limit.debtors or ())
        limit.debtors = None

    def _drop_first(self, debtors: OrderedDict[Hashable, Debt]) -> None:
        debtors.popitem(last=False)
        self._count -= 1

    def _drop_oldest(self) -> None:
        """Drop the oldest client of the limit that was written longest ago."""
        limit = next(iter(self._limits))
        assert limit.debtors is not None
        self._drop_first(limit.debtors)
        if not limit.debtors:
            self.forget(limit)
