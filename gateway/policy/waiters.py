"""Who waits at a limit of events that processes share.

When its unit will be here nobody knows, as others have some of the rate. So whoever waits asks
again when it would be its turn if all of the rate came here.
"""

from __future__ import annotations

from bisect import bisect_left, insort

LEAST = 0.01
"""Seconds until somebody asks again, at least: an answer takes a few milliseconds."""


class Waiters:
    """Each is known by when it asked first. One that never asked again is forgotten after
    `patience` seconds, when it would have been refused."""

    __slots__ = ("_patience", "_since")

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._since: list[float] = []

    def __len__(self) -> int:
        return len(self._since)

    def ahead(self, since: float, now: float) -> int:
        """How many asked before that."""
        del self._since[: bisect_left(self._since, now - self._patience)]
        return bisect_left(self._since, since)

    def put(self, since: float) -> None:
        """It has to wait."""
        insort(self._since, since)

    def take_out(self, since: float) -> None:
        """It waits no more."""
        at = bisect_left(self._since, since)
        if at < len(self._since) and self._since[at] == since:
            del self._since[at]
