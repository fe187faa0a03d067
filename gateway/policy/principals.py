"""Totals per principal: what each client sent and received, over all its topics.

Metrics by topic have no label for the principal, and metrics by principal none for the topic: with
both labels, the number of series would be the product. A principal gets figures of its own when it
opens its first producer or consumer, unless the bound on such principals is reached. All other
principals share one row.
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
    accounts. `most`: the most principals with figures of their own."""

    def __init__(self, most: int = PRINCIPALS) -> None:
        self._most = most
        self._principals: dict[str, _Principal] = {}

    def opened(self, account: Account) -> None:
        """Count the traffic of an account in the totals of its principal, if its client has a
        principal."""
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
        """Add the counts of a closed account to the totals of its principal."""
        name = account.subject.principal
        for principal in (self._principals.get(name or OTHER), self._principals.get(OTHER)):
            if principal is not None and principal.side(account.action).close(account):
                return

    def principals(self) -> Iterator[PrincipalFigures]:
        """Yield the figures of all principals. Those of one principal may come in several parts,
        whose sum is the total."""
        for name, principal in tuple(self._principals.items()):
            for produced, waits in principal.produced.parts():
                yield PrincipalFigures(name, produced, NOTHING, waits)
            for consumed, waits in principal.consumed.parts():
                yield PrincipalFigures(name, NOTHING, consumed, None, waits)
