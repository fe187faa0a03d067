"""Totals per principal: what each client sent and received, over all its topics.

Metrics by topic name no principals, and metrics by principal no topics: with both labels their
numbers would multiply. A principal gets figures of its own with the first producer or consumer that
it opens, up to a bound; all other principals share one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.accounts import ActionTotals
from gateway.telemetry.figures import NOTHING, OTHER, PRINCIPALS, PrincipalFigures
from gateway.wire.account import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.wire.account import Account


class _Principal:
    __slots__ = ("consumed", "produced")

    def __init__(self) -> None:
        self.produced, self.consumed = ActionTotals(), ActionTotals()

    def side(self, action: Action) -> ActionTotals:
        return self.produced if action is Action.PRODUCE else self.consumed


class PrincipalBook:
    """The totals of the principals of one cluster. It is an `accounts.Watcher` of the cluster's
    accounts. `most`: principals with figures of their own."""

    def __init__(self, most: int = PRINCIPALS) -> None:
        self._most = most
        self._principals: dict[str, _Principal] = {}

    def opened(self, account: Account) -> None:
        """Count the traffic of an account to its principal's totals, if it has a principal."""
        name = account.subject.principal
        if name is None:
            return
        if name not in self._principals and len(self._principals) >= self._most:
            name = OTHER
        principal = self._principals.get(name)
        if principal is None:
            principal = self._principals[name] = _Principal()
        principal.side(account.action).open(account)

    def closed(self, account: Account) -> None:
        """Keep the counts of a closed account in its principal's totals."""
        name = account.subject.principal
        for principal in (self._principals.get(name or OTHER), self._principals.get(OTHER)):
            if principal is not None and principal.side(account.action).close(account):
                return

    def principals(self) -> Iterator[PrincipalFigures]:
        """Yield the figures of all principals. A principal may come in several parts, which add
        up."""
        for name, principal in tuple(self._principals.items()):
            for produced, waits in principal.produced.parts():
                yield PrincipalFigures(name, produced, NOTHING, waits)
            for consumed, waits in principal.consumed.parts():
                yield PrincipalFigures(name, NOTHING, consumed, None, waits)
