"""Bounds the number of open connections, and of long responses made at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Slots:
    """Slots for `number` connections, each known by the cancel scope that it is served in.

    If all slots are taken, a new connection evicts the one that has been idle longest. Busy
    connections stay.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._taken = 0
        self._idle: dict[trio.CancelScope, None] = {}  # the longest idle first

    def take(self) -> None:
        """Take a slot before any work, and evict a connection if there are too many.

        Eviction takes a moment, so the number may be exceeded for as long.
        """
        self._taken += 1
        if self._taken > self._number:
            self.evict()

    def release(self, scope: trio.CancelScope) -> None:
        """Give back the slot of a connection."""
        self._taken -= 1
        self.mark_busy(scope)

    def mark_idle(self, scope: trio.CancelScope) -> None:
        """Make a connection the last to be evicted."""
        self._idle.pop(scope, None)
        self._idle[scope] = None

    def mark_busy(self, scope: trio.CancelScope) -> None:
        """Protect a connection from eviction."""
        self._idle.pop(scope, None)

    def evict(self) -> bool:
        """Cancel the connection that has been idle longest. Return false if none is idle."""
        scope = next(iter(self._idle), None)
        if scope is None:
            return False
        self.mark_busy(scope)
        scope.cancel()
        return True


class LifoSemaphore:
    """A semaphore that serves the last task to arrive first.

    A task that has waited for long is nearest to giving up, and may belong to a client that only
    wants others to wait.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: list[trio.Event] = []

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Acquire the semaphore for the duration of the block."""
        await self._acquire()
        try:
            yield
        finally:
            self._release()

    async def _acquire(self) -> None:
        if self._free:
            self._free -= 1
            return
        granted = trio.Event()
        self._waiting.append(granted)
        try:
            await granted.wait()
        except trio.Cancelled:
            if granted.is_set():
                self._release()
            else:
                self._waiting.remove(granted)
            raise

    def _release(self) -> None:
        if self._waiting:
            self._waiting.pop().set()
        else:
            self._free += 1
