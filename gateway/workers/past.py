"""What workers have told of themselves: the last of each, and what those had counted that ended.

A sum that loses a summand falls, and whoever watches takes a counter that falls for one that began
at zero: all that the others had counted would count as new. So what a worker has counted stays
counted when it ends, and when it does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.workers.merging import merged

LARGEST = 32 * 1024 * 1024
"""Characters of what has ended, 200,000 lines of topics; beyond it all of it is forgotten."""


class Life(NamedTuple):
    """One process in one place."""

    worker: int
    life: int


class Past:
    """Texts of metrics, by the process that told them."""

    def __init__(self) -> None:
        self._last: dict[Life, list[str]] = {}
        self._ended: list[str] = []

    def take(self, told: Mapping[Life, list[str]]) -> None:
        """What some tell now, in place of what they told before."""
        self._last.update(told)

    def bury(self, living: frozenset[Life]) -> Iterator[None]:
        """Add up what others than these had counted, step by step."""
        for life in self._last.keys() - living:
            chunks = merged([self._ended, self._last[life]], counters=True)
            found = []
            for chunk in chunks:
                found.append(chunk.decode())
                yield
            self._ended = found if sum(map(len, found)) <= LARGEST else []
            del self._last[life]

    def texts(self) -> list[list[str]]:
        """All that counts, to be merged."""
        return [self._ended, *self._last.values()]
