"""How soon a worker is started again. Pure: times are arguments."""

from __future__ import annotations

FIRST = 0.1
"""Seconds: one that ended by accident is hardly missed."""

LONGEST = 10.0
"""Seconds: one that cannot start takes a core for half a second each time."""

LASTING = 30.0
"""Seconds of life after which an end has nothing to do with the start."""


class BackOff:
    """Of one worker, and of all who follow in its place."""

    def __init__(self) -> None:
        self._next = FIRST

    def after(self, lived: float) -> float:
        """How long to wait, after one that lived for so many seconds."""
        wait = FIRST if lived >= LASTING else self._next
        self._next = min(LONGEST, 2 * wait)
        return wait
