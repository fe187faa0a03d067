"""When what waits in a queue came first, though it was thrown away since and came again.

A client that was made to send again sends the same frames in the same order. So the ages of what
was thrown away are those of as many bytes that come next.
"""

from __future__ import annotations

from collections import deque

GRAIN = 0.1
"""Seconds that make no difference: frames that came within them have one age."""

Marks = deque[tuple[int, float]]
"""So many bytes, and when they came first."""


class Ages:
    """Of one queue. `earlier`: of what was thrown away before."""

    __slots__ = ("_earlier", "_marks")

    def __init__(self, earlier: Marks | None = None) -> None:
        self._earlier: Marks = earlier or deque()
        self._marks: Marks = deque()

    @property
    def first(self) -> float | None:
        """When the oldest came first; None: nothing waits."""
        return self._marks[0][1] if self._marks else None

    def put(self, size: int, now: float) -> None:
        """So many bytes more wait."""
        while size and self._earlier:
            known, came = self._earlier.popleft()
            taken = min(size, known)
            self._add(taken, came)
            size -= taken
            if taken < known:
                self._earlier.appendleft((known - taken, came))
        if size:
            self._add(size, now)

    def _add(self, size: int, came: float) -> None:
        if self._marks and came - self._marks[-1][1] < GRAIN:
            before, since = self._marks.pop()
            size, came = size + before, since
        self._marks.append((size, came))

    def passed(self, size: int) -> None:
        """So many bytes, the oldest, wait no more."""
        while size and self._marks:
            known, came = self._marks.popleft()
            if size < known:
                self._marks.appendleft((known - size, came))
            size -= min(size, known)

    def rest(self) -> Marks:
        """All that waits, and what may still come again."""
        return self._marks + self._earlier
