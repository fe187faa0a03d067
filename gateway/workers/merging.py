"""Merges the metrics of several processes: adds up samples of the same name and labels.

Merging 100,000 lines from each of four workers takes a third of a second, so it is done in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from operator import add
from typing import NamedTuple

from gateway.telemetry.families import FAMILIES, Merge

_LINES_PER_SLICE = 1000
"""Lines written or freed between two chunks: a third of a millisecond."""

LARGEST = 32 * 1024 * 1024
"""Characters of the counters of ended processes, 200,000 lines of topics; beyond it all of them are
forgotten."""

Number = int | float
Combine = Callable[[Number, Number], Number]

_COMBINE: Mapping[Merge, Combine] = {Merge.SUM: add, Merge.LEAST: min, Merge.MOST: max}


class _MergedFamily:
    """One metric family. `head`: its comment lines. `samples`: values by name and labels."""

    def __init__(self, name: str) -> None:
        self.head: list[str] = []
        self.samples: dict[str, Number] = {}
        declared = FAMILIES.get(name)
        self._combine = _COMBINE[Merge.SUM if declared is None else declared.merge]

    @property
    def counts(self) -> bool:
        """Return whether this family of metrics is a counter. The buckets of a histogram are
        counters too."""
        ends = " counter\n", " histogram\n"
        return any(line.endswith(ends) for line in self.head if line[2:6] == "TYPE")

    def take(self, line: str) -> None:
        sample, _, value = line.rpartition(" ")
        number = int(value) if value.isdigit() else float(value)
        before = self.samples.get(sample)
        self.samples[sample] = number if before is None else self._combine(before, number)

    def chunks(self) -> Iterator[bytes]:
        yield "".join(self.head).encode()
        samples = iter(self.samples.items())
        while lines := [
            f"{sample} {number}\n" for sample, number in islice(samples, _LINES_PER_SLICE)
        ]:
            yield "".join(lines).encode()
        # Freed in slices too: freeing all at once takes milliseconds.
        while self.samples:
            for _ in range(min(_LINES_PER_SLICE, len(self.samples))):
                self.samples.popitem()
            yield b""


def merge(expositions: Iterable[Iterable[str]], *, counters: bool = False) -> Iterator[bytes]:
    """Yield the text of several processes' metrics merged into one; with `counters`, only the
    counters in it. Each exposition is a text in parts, which may be cut anywhere.

    Other tasks may run between two yielded chunks, some of which are empty. Merging a part of a
    thousand lines takes half a millisecond.
    """
    families: dict[str, _MergedFamily] = {}
    for parts in expositions:
        yield from _read(parts, families)
    for family in families.values():
        for chunk in family.chunks():
            yield chunk if family.counts or not counters else b""


def _read(parts: Iterable[str], families: dict[str, _MergedFamily]) -> Iterator[bytes]:
    rest, family = "", _MergedFamily("")
    for part in parts:
        *lines, rest = (rest + part).split("\n")
        for line in lines:
            if line.startswith("#"):
                family = _family(line, families)
            else:
                family.take(line)
        yield b""


def _family(line: str, families: dict[str, _MergedFamily]) -> _MergedFamily:
    """Return the family that a comment line (`# TYPE name counter`) is about."""
    name = line.split(" ", 3)[2]
    family = families.setdefault(name, _MergedFamily(name))
    if f"{line}\n" not in family.head:
        family.head.append(f"{line}\n")
    return family


class Life(NamedTuple):
    """One process of one worker. `life`: number of processes that this worker had before."""

    worker: int
    life: int


class MetricsHistory:
    """The last metrics of each process, and the counters of ended processes.

    A sum that loses a summand falls, and monitoring takes a falling counter for a counter that
    restarted at zero: all that the other workers had counted would count once more. So a worker's
    counters stay in the sum when it ends, and when it does not answer.
    """

    def __init__(self) -> None:
        self._last: dict[Life, list[str]] = {}
        self._ended: list[str] = []

    def record(self, texts: Mapping[Life, list[str]]) -> None:
        """Store the newest metrics of some processes, in place of their earlier ones."""
        self._last.update(texts)

    def retire(self, living: frozenset[Life]) -> Iterator[None]:
        """Add the counters of processes that have ended to those of processes that ended earlier.
        The iterator yields between slices of this work. `living`: the processes that have not
        ended."""
        for life in self._last.keys() - living:
            counted = []
            for chunk in merge([self._ended, self._last[life]], counters=True):
                counted.append(chunk.decode())
                yield
            self._ended = counted if sum(map(len, counted)) <= LARGEST else []
            del self._last[life]

    def expositions(self) -> list[list[str]]:
        """Return the texts to merge: the counters of ended processes, and the last metrics of each
        other process."""
        return [self._ended, *self._last.values()]
