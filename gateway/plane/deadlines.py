"""One heap for all timers of the plane."""

from __future__ import annotations

import sys
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Callback = Callable[[float], None]

FEW = 1000
"""Cancelled callbacks that may always stay in the heap: some hundred bytes each."""


class Cancellable(Generic[T]):
    """A callback that can be cancelled, which frees all objects that the callback refers to.
    `Deadlines` ignores what the callback returns (`T`); a subclass may use it."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[float], T]) -> None:
        self._callback: Callable[[float], T] | None = callback

    def __call__(self, now: float) -> None:
        if self._callback is not None:
            self._callback(now)

    def cancel(self) -> None:
        """Cancel the callback: it is never called, and no longer kept in memory."""
        self._callback = None

    @property
    def is_cancelled(self) -> bool:
        return self._callback is None


class Deadlines:
    """Callbacks, ordered by the time at which they are called. A callback checks by itself whether
    it still matters; a callback that waits for long is a `Cancellable`. Cancelled callbacks are
    removed when they are more than half of all.

    `on_earlier` is called when a new callback is due before all others.
    """

    def __init__(self, on_earlier: Callable[[], None]) -> None:
        self._heap: list[tuple[float, int, Callback]] = []
        self._order = count()
        self._cancelled = 0  # since the last removal; some may have been due since
        self._on_earlier = on_earlier

    @property
    def head(self) -> float | None:
        """Return when the next callback is due; None if there is no callback."""
        return self._heap[0][0] if self._heap else None

    def add(self, when: float, callback: Callback) -> None:
        """Call `callback(now)` at the time `when`, or soon after it."""
        head = self.head
        heappush(self._heap, (when, next(self._order), callback))
        if head is None or when < head:
            self._on_earlier()

    def cancel(self, callback: Cancellable[Any]) -> None:
        """Cancel a callback, and remove cancelled callbacks if there are many. Without removal, a
        thousand short pairs a second would each leave an entry here until their idle deadline."""
        callback.cancel()
        self._cancelled += 1
        if self._cancelled > max(FEW, len(self._heap) // 2):
            self._heap[:] = [entry for entry in self._heap if not _is_cancelled(entry[2])]
            heapify(self._heap)
            self._cancelled = 0

    def expire(self, now: float, most: int = sys.maxsize) -> None:
        """Call the callbacks that are due at the time `now`, at most `most` of them."""
        while most > 0 and self._heap and self._heap[0][0] <= now:
            heappop(self._heap)[2](now)
            most -= 1

    def __len__(self) -> int:
        return len(self._heap)


def _is_cancelled(callback: Callback) -> bool:
    return isinstance(callback, Cancellable) and callback.is_cancelled
