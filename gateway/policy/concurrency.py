"""Concurrency limits: how many producers and consumers may be open at the same time.

A concurrency limit is compared with the number of open accounts. Unlike a rate limit it earns no
units as time passes, so an account beyond the limit is refused, and never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.keys import Identity, identity_of
from gateway.policy.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Collection

    from gateway.policy.matching import AppliedLimit
    from gateway.telemetry.figures import RuleFigures
    from gateway.wire.account import Account


class ConcurrencyLimiter:
    """All concurrency limits of a process."""

    def __init__(self) -> None:
        self._open: dict[Identity, int] = {}
        self._most: dict[Identity, float] = {}
        self._limits_of: dict[Account, tuple[Identity, ...]] = {}
        self._tallies = Tallies()

    def __len__(self) -> int:
        return len(self._open)

    def count(self, limit: AppliedLimit) -> int:
        """Return the number of open accounts under a limit."""
        return self._open.get(identity_of(limit), 0)

    def find_full(self, limits: Collection[AppliedLimit]) -> AppliedLimit | None:
        """Return the first enforced limit that is full, so that it admits no other account; None if
        no enforced limit is full. A refusal is counted at each full limit, shadow limits included.
        """
        full = [limit for limit in limits if self.count(limit) >= limit.rate]
        for limit in full:
            self._tallies.refused(identity_of(limit))
        return next((limit for limit in full if limit.mode == "enforce"), None)

    def figures(self) -> list[RuleFigures]:
        """Return the figures of each rule: the number of its limits, its refusals, and the used
        share of its fullest limit."""
        return self._tallies.figures(
            (identity, 0, number / max(1.0, self._most[identity]))
            for identity, number in self._open.items()
        )

    def admit(self, account: Account, limits: Collection[AppliedLimit]) -> None:
        """Count an open account under exactly these limits, even if they are full; it no longer
        counts under any other limit."""
        self.release(account)
        identities = tuple(map(identity_of, limits))
        if identities:
            self._limits_of[account] = identities
        for identity, limit in zip(identities, limits, strict=True):
            self._open[identity] = self._open.get(identity, 0) + 1
            self._most[identity] = limit.rate

    def release(self, account: Account) -> None:
        """Stop counting an account under its limits."""
        for identity in self._limits_of.pop(account, ()):
            self._open[identity] -= 1
            if not self._open[identity]:
                del self._open[identity], self._most[identity]
