"""How long to wait before a process that has ended is started again."""

from __future__ import annotations

FIRST = 0.1
"""Seconds until the first restart: an accidental end is hardly noticed."""

LONGEST = 10.0
"""Seconds between restarts at most: each failed start takes half a second of a core."""

LASTING = 30.0
"""Seconds that a process must run so that its end is unrelated to its start."""


class BackOff:
    """The delays between restarts of one process."""

    def __init__(self) -> None:
        self._next = FIRST

    def after(self, lived: float) -> float:
        """Return the seconds to wait before the process is started again. `lived`: how many seconds
        it ran."""
        wait = FIRST if lived >= LASTING else self._next
        self._next = min(LONGEST, 2 * wait)
        return wait
