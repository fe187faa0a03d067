"""Metrics of several processes as those of one: samples of one name and labels are added up.

100,000 lines of each of four workers take a third of a second, so it is done in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

_LINES_PER_SLICE = 1000
"""Written, or forgotten, between two chunks: a third of a millisecond."""

Number = int | float
Combine = Callable[[Number, Number], Number]


def _sum(one: Number, other: Number) -> Number:
    return one + other


OTHERWISE: Mapping[str, Combine] = {
    # 1 in each.
    "gateway_build_info": min,
    # One that a worker does not reach is not well, whatever others think.
    "gateway_broker_healthy": min,
    # Each has heard of all others, the last one that came later than the rest.
    "gateway_store_processes": min,
    "gateway_store_up": min,
    # In force everywhere are those that the last one has.
    "gateway_rules_generation": min,
    "gateway_rules_last_reload_timestamp_seconds": min,
    # The gateway's, which is its parent's.
    "process_start_time_seconds": min,
    # Each has its own bound: the one who comes nearest to it counts.
    "process_open_fds": max,
    "process_max_fds": min,
}
"""What is not added, by family."""


class _Family:
    """`head`: the lines about it. `samples`: by name and labels, as they are written."""

    def __init__(self, name: str) -> None:
        self.head: list[str] = []
        self.samples: dict[str, Number] = {}
        self._combine = OTHERWISE.get(name, _sum)

    @property
    def counts(self) -> bool:
        """Whether it only grows."""
        return any(line.endswith(" counter\n") for line in self.head if line[2:6] == "TYPE")

    def take(self, line: str) -> None:
        sample, _, value = line.rpartition(" ")
        number = int(value) if value.isdigit() else float(value)
        before = self.samples.get(sample)
        self.samples[sample] = number if before is None else self._combine(before, number)

    def chunks(self) -> Iterator[bytes]:
        yield "".join(self.head).encode()
        samples = iter(self.samples.items())
        while lines := [f"{it} {number}\n" for it, number in islice(samples, _LINES_PER_SLICE)]:
            yield "".join(lines).encode()
        # Given back by slices too: all at once takes milliseconds.
        while self.samples:
            for _ in range(min(_LINES_PER_SLICE, len(self.samples))):
                self.samples.popitem()
            yield b""


def merged(expositions: Iterable[Iterable[str]], *, counters: bool = False) -> Iterator[bytes]:
    """Write one exposition for several, each a text in parts, cut anywhere; or just `counters`.

    Between two chunks, some of which are empty, others may run: a part takes as long as it has
    lines, half a millisecond for a thousand.
    """
    families: dict[str, _Family] = {}
    for parts in expositions:
        yield from _taken(parts, families)
    for family in families.values():
        for chunk in family.chunks():
            yield chunk if family.counts or not counters else b""


def _taken(parts: Iterable[str], families: dict[str, _Family]) -> Iterator[bytes]:
    rest, family = "", _Family("")
    for part in parts:
        *lines, rest = (rest + part).split("\n")
        for line in lines:
            if line.startswith("#"):
                family = _family(line, families)
            else:
                family.take(line)
        yield b""


def _family(line: str, families: dict[str, _Family]) -> _Family:
    """The one that a line of comment (`# TYPE name counter`) is about."""
    name = line.split(" ", 3)[2]
    family = families.setdefault(name, _Family(name))
    if f"{line}\n" not in family.head:
        family.head.append(f"{line}\n")
    return family
