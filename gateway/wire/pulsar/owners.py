"""Remembers to which principal each transaction belongs; `transactions` has the reason."""

from __future__ import annotations

from typing import NamedTuple

MOST = 100_000
"""Transactions of one listener, 300 bytes each. A principal gets no more than it leaves free, so
that many transactions of one principal do not displace those of others."""


class Transaction(NamedTuple):
    """The id of a transaction. `scalable`: of the coordinators of 5.0, whose ids count up apart
    from those of the others. `coordinator`, `number`: the upper and lower half of the id."""

    scalable: bool
    coordinator: int
    number: int


class TransactionOwners:
    """The owners of the transactions of one listener. `most`: see `MOST`; beyond it the oldest
    transactions of a principal are forgotten."""

    __slots__ = ("_most", "_of", "_owners")

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._owners: dict[Transaction, str] = {}
        self._of: dict[str, dict[Transaction, None]] = {}  # of each principal, the oldest first

    def get(self, transaction: Transaction) -> str | None:
        """Return the principal that owns a transaction; None if that is not known."""
        return self._owners.get(transaction)

    def add(self, transaction: Transaction, principal: str) -> None:
        """Remember the owner of a transaction that a broker has just begun."""
        self.remove(transaction)  # a coordinator that lost its log counts anew
        own = self._of.setdefault(principal, {})
        while own and len(own) >= self._most - len(self._owners):
            oldest = next(iter(own))
            del own[oldest], self._owners[oldest]
        own[transaction] = None
        self._owners[transaction] = principal

    def remove(self, transaction: Transaction) -> None:
        """Forget a transaction that has ended."""
        principal = self._owners.pop(transaction, None)
        if principal is None:
            return
        own = self._of[principal]
        del own[transaction]
        if not own:
            del self._of[principal]
