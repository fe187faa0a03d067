"""Accounts of protocols in which no frame opens or closes a producer or consumer: the first frame
that uses a topic opens an account, and an account that is not used any more is closed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Generic, TypeVar

from gateway.wire.account import Account, Action
from gateway.wire.admission import NO_ROOM
from gateway.wire.budget import Quota
from gateway.wire.contract import Denial
from gateway.wire.services import Services
from gateway.wire.subject import Subject

CLOSED_AT_ONCE = 256
"""The most accounts that are closed in one step."""

Key = TypeVar("Key")

_NONE: Mapping[Account, int] = MappingProxyType({})


class Accounts(Generic[Key]):
    """The open accounts of one connection. `size`: bytes of the memory budget for each account.
    `tables`: where accounts are looked up by their topics."""

    __slots__ = ("_quota", "_seen", "_services", "_size", "_tables")

    def __init__(
        self, services: Services, quota: Quota, size: int, tables: tuple[dict[Key, Account], ...]
    ) -> None:
        self._services = services
        self._quota = quota
        self._size = size
        self._tables = tables
        self._seen = _NONE  # messages of each account at the last call of `close_idle`

    def __iter__(self) -> Iterator[Account]:
        return (account for table in self._tables for account in table.values())

    def admit(self, action: Action, subject: Subject) -> Account | Denial:
        """Return a new account, or why there is none. The caller adds it to a table."""
        if not self._quota.fits(self._size):
            return NO_ROOM
        account = self._services.admit(action, subject)
        if isinstance(account, Account):
            self._quota.take(self._size)
        return account

    def close_idle(self, busy: Collection[Account | None]) -> list[Account]:
        """Close the accounts that have counted nothing since the last call, but none in `busy`.
        Return the closed accounts."""
        closed: list[Account] = []
        for table in self._tables:
            for key, account in list(table.items()):
                if self._seen.get(account) == account.messages and account not in busy:
                    self._close(table, key)
                    closed.append(account)
        self._seen = {account: account.messages for account in self}
        return closed

    def withdraw(self, account: Account) -> None:
        """Close an account; the next use of its topic is authorized anew."""
        for table in self._tables:
            for key in [key for key, other in table.items() if other is account]:
                self._close(table, key)

    def close_some(self) -> bool:
        """Close some accounts; return whether there are more."""
        self._seen = _NONE
        for table in self._tables:
            for key in list(islice(table, CLOSED_AT_ONCE)):
                self._close(table, key)
        return any(True for _ in self)

    def _close(self, table: dict[Key, Account], key: Key) -> None:
        self._services.release(table.pop(key))
        self._quota.give_back(self._size)
