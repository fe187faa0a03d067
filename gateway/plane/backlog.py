"""Keeps work until other pairs were served: slices of long decisions, and received bytes that are
not scanned yet."""

from __future__ import annotations

from collections import deque
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
        self._of: dict[Served, deque[tuple[Served, Work]]] = {}
        # A heap of the clients that have work, each with the virtual time up to which it had been
        # served when it was put there.
        self._clients: list[tuple[float, int, Served]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._clients)

    def add(self, served: Served, work: Work) -> None:
        """Add a piece of work. `served`: that of its connection."""
        client = _client(served)
        if client not in self._of:
            self._of[client] = deque()
            heappush(self._clients, (client.until, next(self._order), client))
        self._of[client].append((served, work))

    def take(self) -> tuple[Served, Work]:
        """Remove the first piece of work, and return it with its connection's `Served`."""
        while True:
            noted, _, client = self._clients[0]
            if client.until <= noted:
                break
            # The client was served since: others may come first.
            heapreplace(self._clients, (client.until, next(self._order), client))
        works = self._of[client]
        first = works.popleft()
        if not works:
            del self._of[client]
            heappop(self._clients)
        return first


def _client(served: Served) -> Served:
    """Return the member below the whole loop to which a connection belongs."""
    while served.above is not None and served.above.above is not None:
        served = served.above
    return served
