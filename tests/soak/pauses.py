"""How long Python's garbage collector stops the process, with many pairs open."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from tests.soak import brokers, report, watched
from tests.soak.report import mib
from tests.soak.runner import Gateway, claim, in_time, possible_pairs, running
from tests.soak.visits import AT_ONCE, Caller, pairs, ping, rounds

PAIRS = 10_000
"""Or as many as descriptors allow."""

COLLECTORS = tuple(watched.COLLECTORS)

SECONDS = 20.0

LONGEST = 500.0
"""Milliseconds of CPU time that one collection may take: clients wait for ten seconds, and their
own collectors pause as long."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one collector setting. Milliseconds by generation; bytes."""

    collector: str
    pairs: int
    seconds: float
    connects: int
    opening: list[dict[str, float]]
    serving: list[dict[str, float]]
    closing: list[dict[str, float]]
    round_trips: list[float]
    rss: tuple[int, int]

    @property
    def longest(self) -> float:
        """Return the longest of all collections."""
        return max(it["longest"] for it in (*self.opening, *self.serving, *self.closing))


def run(
    number: int,
    folder: Path,
    seconds: float = SECONDS,
    collectors: Iterable[str] = COLLECTORS,
) -> list[Outcome]:
    """Measure each setting with a gateway of its own. Claims concern only the first setting, which
    is the default."""
    number = min(number, possible_pairs() - 2 * AT_ONCE)
    outcomes = []
    for place, collector in enumerate(collectors):
        here = folder / str(place)
        here.mkdir()
        outcomes.append(_with(collector, number, here, seconds))
    usual = outcomes[0]
    claim(usual.longest <= LONGEST, f"a collection took {usual.longest:.0f} ms")
    return outcomes


def _with(collector: str, number: int, folder: Path, seconds: float) -> Outcome:
    with (
        brokers.in_process(folder, 2) as addresses,
        running(folder, addresses, collector=collector) as gateway,
    ):
        callers = pairs(gateway.ports["passing"], number)
        opening = gateway.report().pauses
        gateway.set_collector()
        before = gateway.rss
        connects, round_trips, took = _served(gateway, callers, seconds)
        serving, rss = gateway.report().pauses, (before, gateway.rss)
        for caller in callers:
            caller.close()
        claim(bool(in_time(gateway.is_at_rest)), "pairs stayed though their clients are gone")
        closing = gateway.report().pauses
    return Outcome(collector, number, took, connects, opening, serving, closing, round_trips, rss)


def _served(
    gateway: Gateway, callers: Sequence[Caller], seconds: float
) -> tuple[int, list[float], float]:
    """Alternate churn with round trips on open pairs."""
    began, connects, round_trips = time.monotonic(), 0, []
    turns = cycle(callers)
    for more, _ in rounds(gateway.ports):
        connects += more
        at = time.monotonic()
        ping(islice(turns, AT_ONCE))
        now = time.monotonic()
        round_trips.append(1000 * (now - at))
        if now >= began + seconds:
            return connects, round_trips, now - began
    raise AssertionError("visits never end")


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a line for each setting."""
    head = ["collector", "pairs", "connects a second", "while opening", "while serving: youngest",
            "middle", "oldest", "share", "while closing", "64 PINGs: 99 %, longest",
            "RSS before, after"]  # fmt: skip
    return report.table(head, map(_row, outcomes))


def _row(it: Outcome) -> list[str]:
    trips = sorted(it.round_trips)
    share = sum(generation["total"] for generation in it.serving) / it.seconds / 10
    late = trips[int(len(trips) * 0.99) - 1], trips[-1]
    return [
        it.collector, str(it.pairs), f"{it.connects / it.seconds:,.0f}", _oldest(it.opening),
        *map(_generation, it.serving), f"{share:.2f} %", _oldest(it.closing),
        "{:.0f}, {:.0f} ms".format(*late), ", ".join(map(mib, it.rss)),
    ]  # fmt: skip


def _generation(collections: dict[str, float]) -> str:
    """Return the number of collections, and the longest."""
    return (
        f"{collections['count']:.0f}, {collections['longest']:.1f} ms"
        if collections["count"]
        else "-"
    )


def _oldest(collections: Sequence[dict[str, float]]) -> str:
    return _generation(collections[2])
