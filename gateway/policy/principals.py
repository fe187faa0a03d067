"""Totals per principal: what each client sent and got, over all its topics.

Metrics of topics do not name clients, and those of clients no topics: with both they would be as
many as both multiplied. A principal has figures of its own from the first producer or consumer that
it opens, up to a bound; all others share one row.
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
    """The principals of one cluster. It watches the cluster's accounts; see `accounts.Watcher`."""

    def __init__(self, most: int = PRINCIPALS) -> None:
        self._most = most
        self._principals: dict[str, _Principal] = {}

    def opened(self, account: Account) -> None:
        """Count what passes for an account's principal, if it has one."""
        name = account.subject.principal
        if name is None:
            return
        if name not in self._principals and len(self._principals) >= self._most:
            name = OTHER
        found = self._principals.get(name)
        if found is None:
            found = self._principals[name] = _Principal()
        found.side(account.action).open(account)

    def closed(self, account: Account) -> None:
        """Keep the counts of an account."""
        name = account.subject.principal
        for found in (self._principals.get(name or OTHER), self._principals.get(OTHER)):
            if found is not None and found.side(account.action).close(account):
                return

    def principals(self) -> Iterator[PrincipalFigures]:
        """Yield the figures of all principals. One may come in several parts, which add up."""
        for name, found in tuple(self._principals.items()):
            for produced, waits in found.produced.parts():
                yield PrincipalFigures(name, produced, NOTHING, waits)
            for consumed, waits in found.consumed.parts():
                yield PrincipalFigures(name, NOTHING, consumed, None, waits)
