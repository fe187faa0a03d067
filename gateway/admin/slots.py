"""Bounds the number of open connections, and the number of long responses that are made at a
time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Slots:
    """Slots for `number` connections. A connection is identified by the cancel scope in which it is
    served.

    If all slots are taken, a new connection evicts the connection that has been idle for longest.
    Connections that are not idle are not evicted.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._taken = 0
        self._idle: dict[trio.CancelScope, None] = {}  # the longest idle first

    def take(self) -> None:
        """Take a slot, before any work for the connection begins. If no slot is free, evict the
        connection that has been idle for longest.

        There may be more connections than `number`: for a moment, or while no connection is idle.
        """
        self._taken += 1
        if self._taken > self._number:
            self.evict()

    def release(self, scope: trio.CancelScope) -> None:
        """Give back the slot of a connection."""
        self._taken -= 1
        self.mark_busy(scope)

    def mark_idle(self, scope: trio.CancelScope) -> None:
        """Mark a connection as idle. Of idle connections the one that has been idle longest is
        evicted first."""
        self._idle.pop(scope, None)
        self._idle[scope] = None

    def mark_busy(self, scope: trio.CancelScope) -> None:
        """Mark a connection as not idle, so that it cannot be evicted."""
        self._idle.pop(scope, None)

    def evict(self) -> bool:
        """Cancel the connection that has been idle for longest. Return False if no connection is
        idle."""
        scope = next(iter(self._idle), None)
        if scope is None:
            return False
        self.mark_busy(scope)
        scope.cancel()
        return True


class LifoSemaphore:
    """A semaphore that serves the task that has arrived last before all others.

    A task that has waited for long is about to give up, and may belong to a client that only wants
    to make others wait.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: list[trio.Event] = []

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Acquire the semaphore, and release it at the end of the block."""
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
