"""Limits that several processes share: one book of reservations, which all of them ask.

A process asks for some units in advance, and is told from when on it may use them. Whoever asks is
served in that order, and the limit's meter moves on at once, so the sum over all processes is exact
however long answers take, and nobody has to ask twice. What is asked for lasts for about
`RESERVATION_SECONDS`, so a busy process asks ten times a second, whatever passes.

Who has used more than it had (a frame passes whole) says so with its next question, and who has not
used what it had gives it back.

The same is done by `gateway.fleet.valkey` in a store that replicas share.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.gcra import MOST_DEBT

if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVATION_SECONDS = 0.1
"""Seconds of the rate that are reserved at a time by all who want as much as they can get."""

ACTIVE = 1.0
"""Seconds after its last question that a process counts among those who share a limit."""


class UnitRequest(NamedTuple):
    """One question about one limit, `burst` in units, `rate` in units per second.

    `units`: so many are wanted, at least one is given; 0: none, and others need not share with this
    process. `owed`: used beyond what was reserved; below zero: reserved, and not used.
    """

    key: str
    rate: float
    burst: float
    units: float
    owed: float = 0.0


class Reserved(NamedTuple):
    """So many units may be used in so many seconds, and what was owed is earned by then."""

    units: float
    delay: float


class _Book:
    """One limit: when all that was reserved is earned, and who asked when."""

    __slots__ = ("arrival", "asked", "kept")

    def __init__(self) -> None:
        self.arrival = float("-inf")
        self.asked: dict[str, float] = {}
        self.kept = False

    def share(self, process: str, now: float) -> int:
        """How many share it, the one that asks now among them."""
        self.leave(process)
        self.asked[process] = now
        while (first := next(iter(self.asked.items())))[1] <= now - ACTIVE:
            del self.asked[first[0]]
        return len(self.asked)

    def leave(self, process: str) -> None:
        """Others need not share with this process."""
        self.asked.pop(process, None)

    def settle(self, ask: UnitRequest, now: float) -> None:
        """Charge what is owed, up to the bound of debt, or give back."""
        arrival = max(self.arrival, now) + ask.owed / ask.rate
        latest = now + ask.burst / ask.rate + MOST_DEBT
        self.arrival = arrival if ask.owed < 0 else max(self.arrival, min(arrival, latest))

    def take(self, ask: UnitRequest, active: int, now: float) -> float:
        """Hand out an equal part of what comes in `RESERVATION_SECONDS`, or of what is saved up,
        if that is more."""
        room = ask.burst - (max(self.arrival, now) - now) * ask.rate
        most = max(1.0, max(ask.rate * RESERVATION_SECONDS, room) / active)
        units = min(max(1.0, ask.units), most)
        self.arrival = max(self.arrival, now) + units / ask.rate
        return units

    def delay(self, ask: UnitRequest, now: float) -> float:
        """Seconds until all that was handed out is earned, but for what may be saved up."""
        return max(0.0, self.arrival - ask.burst / ask.rate - now)


class Reservations:
    """All limits that are shared. Times are of one clock; a limit at rest is forgotten."""

    def __init__(self) -> None:
        self._books: dict[str, _Book] = {}
        self._resting: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._books)

    def reserve(self, process: str, asks: Iterable[UnitRequest], now: float) -> list[Reserved]:
        """Answer the questions of one process, in their order."""
        self._forget(now)
        return [self._answer(process, ask, now) for ask in asks]

    def _answer(self, process: str, ask: UnitRequest, now: float) -> Reserved:
        book = self._books.get(ask.key)
        if book is None:
            book = self._books[ask.key] = _Book()
        book.settle(ask, now)
        units = 0.0
        if ask.units > 0:
            units = book.take(ask, book.share(process, now), now)
        else:
            book.leave(process)
        self._keep(book, ask.key, now)
        return Reserved(units, book.delay(ask, now))

    def _keep(self, book: _Book, key: str, now: float) -> None:
        if not book.kept:
            book.kept = True
            heappush(self._resting, (max(book.arrival, now + ACTIVE), key))

    def _forget(self, now: float) -> None:
        """Those that are as good as new ones."""
        while self._resting and self._resting[0][0] <= now:
            _, key = heappop(self._resting)
            book = self._books[key]
            book.kept = False
            if max(book.arrival, *(at + ACTIVE for at in book.asked.values()), now) <= now:
                del self._books[key]
            else:
                self._keep(book, key, now)
