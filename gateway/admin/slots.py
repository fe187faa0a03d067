"""Bounds the number of long responses that are made at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import trio

Context = Callable[[], AbstractContextManager[object]]


class LifoSemaphore:
    """A semaphore that serves the task that has arrived last before all others.

    A task that has waited for long is about to give up, and may belong to a client that only wants
    to make others wait.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: list[trio.Event] = []

    @asynccontextmanager
    async def held(self, waiting: Context = nullcontext) -> AsyncIterator[None]:
        """Acquire the semaphore, and release it at the end of the block. `waiting`: makes the
        context that is entered until the semaphore is acquired."""
        with waiting():
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
