"""Accounts of protocols in which no frame opens or closes a producer or consumer: the first frame
that uses a topic opens an account, and an account that is not used any more is closed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from gateway.wire.account import Account, Action
from gateway.wire.admission import NO_ROOM
from gateway.wire.budget import Quota
from gateway.wire.contract import Denial
from gateway.wire.services import Services
from gateway.wire.subject import Subject

CLOSED_AT_ONCE = 256
"""The most accounts that are closed, or looked at, in one step: closing one takes 10 µs."""

Key = TypeVar("Key")

_NEVER = -1


class _Place(NamedTuple):
    """Where an account is looked up. `seen`: its messages when a sweep last looked at it. `sweep`:
    the number of that sweep, or of the last one before the account was opened."""

    table: dict[Any, Account]
    key: Any
    seen: int
    sweep: int


_NONE: Mapping[Account, _Place] = MappingProxyType({})
"""Stands for no accounts. Most connections never have one, so they share it."""


class Accounts(Generic[Key]):
    """The open accounts of one connection. `size`: bytes of the memory budget for each account.

    No step takes longer if there are more accounts: a peer may open as many as the memory budget
    has room for.
    """

    __slots__ = ("_places", "_quota", "_services", "_size", "_sweep")

    def __init__(self, services: Services, quota: Quota, size: int) -> None:
        self._services = services
        self._quota = quota
        self._size = size
        self._places = _NONE  # those at which a sweep has not looked for longest come first
        self._sweep = 0  # the number of the last sweep

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._places)

    def admit(self, action: Action, subject: Subject) -> Account | Denial:
        """Return a new account, or why there is none. The caller gives it to `keep`."""
        if not self._quota.fits(self._size):
            return NO_ROOM
        account = self._services.admit(action, subject)
        if isinstance(account, Account):
            self._quota.take(self._size)
        return account

    def keep(self, table: dict[Key, Account], key: Key, account: Account) -> None:
        """Add a new account to the table in which it is looked up."""
        table[key] = account
        self._put(account, _Place(table, key, _NEVER, self._sweep))

    def _put(self, account: Account, place: _Place) -> None:
        if not isinstance(self._places, dict):
            self._places = {}
        self._places[account] = place

    @property
    def is_sweeping(self) -> bool:
        """Return whether the last sweep has not looked at all accounts yet."""
        first = next(iter(self._places.values()), None)
        return first is not None and first.sweep != self._sweep

    def close_idle(self, busy: Collection[Account | None]) -> list[Account]:
        """Take the next step of a sweep, or the first step of a new one: close the accounts that
        have counted nothing since the last sweep, but none in `busy`. Return the closed
        accounts."""
        if not self.is_sweeping:
            self._sweep += 1
        closed: list[Account] = []
        for account, place in tuple(islice(self._places.items(), CLOSED_AT_ONCE)):
            if place.sweep == self._sweep:
                break
            if place.seen == account.messages and not self._is_used(account, busy):
                self._close(account)
                closed.append(account)
            else:
                self._take(account)
                self._put(account, place._replace(seen=account.messages, sweep=self._sweep))
        return closed

    def _is_used(self, account: Account, busy: Collection[Account | None]) -> bool:
        return account in busy

    def withdraw(self, account: Account) -> None:
        """Close an account, unless it is closed; the next use of its topic is authorized anew."""
        if account in self._places:
            self._close(account)

    def close_some(self) -> bool:
        """Close some accounts; return whether there are more."""
        for account in tuple(islice(self._places, CLOSED_AT_ONCE)):
            self._close(account)
        return len(self._places) > 0

    def _close(self, account: Account) -> None:
        place = self._take(account)
        del place.table[place.key]
        self._services.release(account)
        self._quota.give_back(self._size)

    def _take(self, account: Account) -> _Place:
        assert isinstance(self._places, dict)
        place: _Place = self._places.pop(account)
        return place
