"""Keeps work until other pairs were served: slices of long decisions, and received bytes that are
not scanned yet."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from itertools import count

from gateway.plane.fairness import Served

Work = Callable[[float], object]
"""A piece of work of at most some milliseconds. Its argument is the plane's time."""


class Backlog:
    """Pieces of work. Those come first whose clients have had least of the loop's time; those of
    one client in the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Served, Work]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, served: Served, work: Work) -> None:
        """Add a piece of work. `served`: that of its connection."""
        heappush(self._heap, (_until(served), next(self._order), served, work))

    def take(self) -> tuple[Served, Work]:
        """Remove the first piece of work, and return it with its connection's `Served`."""
        while True:
            noted, _, served, work = self._heap[0]
            until = _until(served)
            if until <= noted:
                heappop(self._heap)
                return served, work
            # The client was served since: others may come first.
            heapreplace(self._heap, (until, next(self._order), served, work))


def _until(served: Served) -> float:
    """Return the virtual time up to which the client of a connection was served."""
    while served.above is not None and served.above.above is not None:
        served = served.above
    return served.until
