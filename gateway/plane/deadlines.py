"""One heap for everything that the plane does later."""

from __future__ import annotations

import sys
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

Callback = Callable[[float], None]


class Cancellable:
    """A callback that can be let go of, and all that it holds with it."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callback) -> None:
        self._callback: Callback | None = callback

    def __call__(self, now: float) -> None:
        if self._callback is not None:
            self._callback(now)

    def cancel(self) -> None:
        """Nothing is called any more."""
        self._callback = None


class Deadlines:
    """Callbacks by time. Nothing is taken out again: a callback looks whether it still matters, and
    one that waits for long is a `Cancellable`.

    `on_earlier` is called when a new deadline comes before all others.
    """

    def __init__(self, on_earlier: Callable[[], None]) -> None:
        self._heap: list[tuple[float, int, Callback]] = []
        self._order = count()
        self._on_earlier = on_earlier

    @property
    def head(self) -> float | None:
        """When the next callback is due."""
        return self._heap[0][0] if self._heap else None

    def add(self, when: float, callback: Callback) -> None:
        """Have `callback(now)` called at `when` or soon after."""
        head = self.head
        heappush(self._heap, (when, next(self._order), callback))
        if head is None or when < head:
            self._on_earlier()

    def expire(self, now: float, most: int = sys.maxsize) -> None:
        """Call what is due, but not more than `most`."""
        while most > 0 and self._heap and self._heap[0][0] <= now:
            heappop(self._heap)[2](now)
            most -= 1

    def __len__(self) -> int:
        return len(self._heap)
