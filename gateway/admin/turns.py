"""Bounds how many connections stay open, and how many long answers are made at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Places:
    """Places for so many, each known by the scope that its work runs in.

    One that comes when all are taken has the place of the one that has waited longest. Whoever is
    `busy` waits for nobody, and stays.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._taken = 0
        self._waiting: dict[trio.CancelScope, None] = {}  # who has waited longest comes first

    def take(self) -> None:
        """Take a place, before any work. One that has to go needs a moment for it."""
        self._taken += 1
        if self._taken > self._number:
            self.make_room()

    def leave(self, scope: trio.CancelScope) -> None:
        """Give a place back."""
        self._taken -= 1
        self.busy(scope)

    def waits(self, scope: trio.CancelScope) -> None:
        """It begins to wait, behind all others."""
        self._waiting.pop(scope, None)
        self._waiting[scope] = None

    def busy(self, scope: trio.CancelScope) -> None:
        """It waits no more."""
        self._waiting.pop(scope, None)

    def make_room(self) -> bool:
        """Cancel the one that has waited longest; False: nobody waits."""
        scope = next(iter(self._waiting), None)
        if scope is None:
            return False
        self.busy(scope)
        scope.cancel()
        return True


class Turns:
    """So many turns at a time. Who comes last has the next one: who has waited for long is nearest
    to giving up, and may be somebody who only wants others to wait.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: list[trio.Event] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        await self._begin()
        try:
            yield
        finally:
            self._end()

    async def _begin(self) -> None:
        if self._free:
            self._free -= 1
            return
        given = trio.Event()
        self._waiting.append(given)
        try:
            await given.wait()
        except trio.Cancelled:
            if given.is_set():
                self._end()
            else:
                self._waiting.remove(given)
            raise

    def _end(self) -> None:
        if self._waiting:
            self._waiting.pop().set()
        else:
            self._free += 1
