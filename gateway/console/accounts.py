"""Lists the open producers and consumers of each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from gateway.wire.account import Account


class OpenAccounts:
    """The accounts of open producers and consumers, of all clusters, by connection; implements
    `policy.accounts.Watcher`."""

    def __init__(self) -> None:
        self._by_connection: dict[int | None, dict[Account, None]] = {}

    def opened(self, account: Account) -> None:
        """Add the account of a producer or consumer that was opened."""
        self._by_connection.setdefault(account.subject.connection, {})[account] = None

    def closed(self, account: Account) -> None:
        """Remove the account of a producer or consumer that was closed."""
        connection = account.subject.connection
        accounts = self._by_connection[connection]
        del accounts[account]
        if not accounts:
            del self._by_connection[connection]

    def of(self, connection: int) -> Collection[Account]:
        """Return the accounts of a connection's open producers and consumers."""
        return self._by_connection.get(connection, {}).keys()
