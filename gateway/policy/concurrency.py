"""How many producers and consumers are open at the same time, and whether one more may be.

Plain counts of accounts: nothing is earned by time, so nobody could be let wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.keys import Identity, identity_of
from gateway.policy.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Collection

    from gateway.policy.matching import AppliedLimit
    from gateway.telemetry.figures import RuleFigures
    from gateway.wire.contract import Account


class Numbers:
    """Given are limits of plain numbers only."""

    def __init__(self) -> None:
        self._open: dict[Identity, int] = {}
        self._places: dict[Account, tuple[Identity, ...]] = {}
        self._tallies = Tallies()

    def __len__(self) -> int:
        return len(self._open)

    def count(self, limit: AppliedLimit) -> int:
        """How many are open under a limit."""
        return self._open.get(identity_of(limit), 0)

    def full(self, limits: Collection[AppliedLimit]) -> AppliedLimit | None:
        """The first limit under which no more may be opened."""
        beyond = [limit for limit in limits if self.count(limit) >= limit.rate]
        for limit in beyond:
            self._tallies.refused(identity_of(limit))
        return next((limit for limit in beyond if limit.mode == "enforce"), None)

    def figures(self) -> list[RuleFigures]:
        """How many limits there are, and what they did."""
        return self._tallies.figures((identity, 0) for identity in self._open)

    def place(self, account: Account, limits: Collection[AppliedLimit]) -> None:
        """Count an account, under these limits and none that it was counted under before. It is
        open: it has a place even where all are taken."""
        self.release(account)
        places = tuple(map(identity_of, limits))
        if places:
            self._places[account] = places
        for place in places:
            self._open[place] = self._open.get(place, 0) + 1

    def release(self, account: Account) -> None:
        """The account is over."""
        for place in self._places.pop(account, ()):
            self._open[place] -= 1
            if not self._open[place]:
                del self._open[place]
