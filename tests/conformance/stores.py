"""Limits that some processes share, by each kind of store, at a time that a test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Protocol

import trio

from gateway.config.store import address
from gateway.fleet.link import Access
from gateway.fleet.scripts import Script
from gateway.fleet.store import StoreError
from gateway.fleet.valkey import Question, ValkeyStore
from gateway.policy.reservations import Reservations, Reserved, UnitRequest
from tests.support.store import StoreServer

PATIENCE = 10.0
"""Seconds for a call where a test is not about it: machines of tests are slow at times."""

MOST_SHARES = 10_000

_numbers = count()


@dataclass
class Clock:
    """Whole microseconds, as the server's."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 6)


class Reserves(Protocol):
    """What the battery asks: of a store this part."""

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved | StoreError]: ...


@dataclass
class Fleet:
    """Processes, each with its own way to the same limits."""

    clock: Clock
    stores: Sequence[Reserves]

    async def ask(self, process: int, units: float, **how: float) -> Reserved:
        """About the one limit of a test."""
        (response,) = await self.stores[process].reserve([an_ask(units, **how)])
        return good(response)


def good(response: Reserved | StoreError) -> Reserved:
    """Raises an error that is of one limit."""
    if isinstance(response, StoreError):
        raise response
    return response


def an_ask(units: float, *, rate: float = 100, burst: float = 10, owed: float = 0) -> UnitRequest:
    return UnitRequest("limit", rate, burst, units, owed)


OpenFleet = Callable[[int], AbstractAsyncContextManager[Fleet]]
"""With so many processes."""


class Deaf(ValkeyStore):
    """Answers can be lost on their way to it."""

    deaf = False

    async def _call_store(self, script: Script, questions: Sequence[Question]) -> list[Any]:
        responses = await super()._call_store(script, questions)
        if self.deaf:
            raise StoreError("says what nobody hears")
        return responses


@dataclass
class _BookStore:
    """The book, asked as a store is."""

    book: Reservations
    clock: Clock
    process: str = field(default_factory=lambda: str(next(_numbers)))

    async def reserve(self, asks: Sequence[UnitRequest]) -> Sequence[Reserved]:
        return self.book.reserve(self.process, asks, self.clock())


@asynccontextmanager
async def book_fleet(processes: int) -> AsyncIterator[Fleet]:
    """In this process's memory."""
    clock, book = Clock(), Reservations()
    yield Fleet(clock, [_BookStore(book, clock) for _ in range(processes)])


@asynccontextmanager
async def valkey_fleet(server: StoreServer, processes: int) -> AsyncIterator[Fleet]:
    """In a real server."""
    clock, prefix = Clock(), f"{next(_numbers)}:"
    async with AsyncExitStack() as stack:
        opening = [
            stack.enter_async_context(opened(server, prefix=prefix, clock=clock))
            for _ in range(processes)
        ]
        yield Fleet(clock, [await store for store in opening])


@asynccontextmanager
async def opened(
    server: StoreServer,
    *,
    prefix: str = "test:",
    patience: float = PATIENCE,
    clock: Callable[[], float] | None = None,
    password: str | None = None,
) -> AsyncIterator[Deaf]:
    """One store, as the gateway would have it."""
    access = Access(address=address(server.url), password=lambda: password)
    store = Deaf(access, prefix=prefix, timeout=patience, clock=clock)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        yield store
        await store.close()


@dataclass(frozen=True, order=True)
class Share:
    """From `due` on these units may be used; in seconds from the beginning."""

    due: float
    process: int
    units: float


async def saturated(fleet: Fleet, seconds: float, **how: float) -> list[Share]:
    """What processes get that want all they can get, and ask again as soon as they have it."""
    began = fleet.clock.now
    turns = [(began, process) for process in range(len(fleet.stores))]
    heapify(turns)
    shares = []
    while (turn := heappop(turns))[0] < began + seconds:
        at, process = turn
        fleet.clock.now = max(fleet.clock.now, round(at, 6))
        response = await fleet.ask(process, 1e12, **how)
        due = fleet.clock.now + response.delay
        shares.append(Share(due - began, process, response.units))
        heappush(turns, (due, process))
        assert len(shares) < MOST_SHARES, "there is no end to what they get"
    return sorted(shares)
