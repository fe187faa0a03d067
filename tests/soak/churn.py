"""Connects, lookups and closes without end, and whether anything grows by them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression, mean

from tests.soak import brokers, report
from tests.soak.report import MIB, mib
from tests.soak.runner import Gateway, claim, in_time, running
from tests.soak.visits import LEFT, REFUSED, rounds

BROKERS = 4

EVERY = 10.0
"""Seconds between two looks at the memory."""

SETTLED = 65.0
"""Seconds after which a connection leaves nothing behind: a cancelled liveness check remains for a
minute at most."""

BLOCKS = 5_000
"""Blocks that may stay of all connects together: of a million, one for two hundred. A connection
has some hundred."""

GROWTH = 16 * MIB
"""Growth of the resident memory by the fitted line. The free space in the allocator's pools depends
on the number of concurrent connections, which a busy machine changes."""


@dataclass(frozen=True, slots=True)
class Look:
    """Connects so far, seconds since the start, resident bytes."""

    connects: int
    seconds: float
    rss: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Looks after the warm-up; the gateway's counts; descriptors before and after; blocks of memory
    at rest, after the warm-up and at the end."""

    looks: list[Look]
    connects: int
    seconds: float
    refused: int
    lookups: int
    redirects: int
    rss: tuple[int, int]
    descriptors: tuple[int, int]
    blocks: tuple[int, int]

    @property
    def slope(self) -> float:
        """Return the bytes for each connect."""
        found = linear_regression([it.connects for it in self.looks], [it.rss for it in self.looks])
        return found.slope

    @property
    def plateaus(self) -> tuple[float, float]:
        """Return the resident memory in the first and the last quarter."""
        part = max(1, len(self.looks) // 4)
        sizes = [look.rss for look in self.looks]
        return mean(sizes[:part]), mean(sizes[-part:])


def run(
    connects: int,
    folder: Path,
    *,
    warm_up: int | None = None,
    every: float = EVERY,
    growth: int = GROWTH,
    settled: float = SETTLED,
    blocks: int = BLOCKS,
) -> Outcome:
    """Make this many connects, and claim that nothing grows by them. `warm_up`: connects before the
    looks."""
    warm_up = connects // 5 if warm_up is None else warm_up
    with (
        brokers.in_process(folder, BROKERS) as addresses,
        running(folder, addresses) as gateway,
    ):
        outcome = _churned(gateway, connects, warm_up, every, settled)
    before, after = outcome.blocks
    claim(after - before <= blocks, f"{after - before} blocks stay\n{table(outcome)}")
    grown = outcome.slope * connects
    claim(grown <= growth, f"memory grows by {mib(grown)} in {connects} connects\n{table(outcome)}")
    first, last = outcome.plateaus
    claim(last - first <= growth, f"memory grew from {mib(first)} to {mib(last)}")
    return outcome


def _churned(
    gateway: Gateway, connects: int, warm_up: int, every: float, settled: float
) -> Outcome:
    descriptors, rss, began = gateway.descriptors, gateway.rss, time.monotonic()
    looks: list[Look] = []
    done = refused = blocks = 0
    for more, of_them_refused in rounds(gateway.ports):
        done, refused = done + more, refused + of_them_refused
        if done >= warm_up and not looks:
            blocks = _blocks(gateway, settled)
        seconds = time.monotonic() - began
        if done >= warm_up and (not looks or seconds >= looks[-1].seconds + every):
            looks.append(Look(done, seconds, gateway.rss))
        if done >= connects:
            break
    claim(bool(in_time(gateway.is_at_rest)), "connections stayed though all clients are gone")
    claim(gateway.has_descriptors(descriptors), "descriptors stayed")
    seconds = time.monotonic() - began
    looks.append(Look(done, seconds, gateway.rss))
    _claim_ends(gateway, done, refused)
    metrics = gateway.metrics()
    lookups, redirects = (
        int(sum(metrics.matching(name)))
        for name in ("gateway_lookups_total", "gateway_lookup_redirects_total")
    )
    sizes, opened = (rss, gateway.rss), (descriptors, gateway.descriptors)
    kept = blocks, _blocks(gateway, settled)
    return Outcome(looks, done, seconds, refused, lookups, redirects, sizes, opened, kept)


def _blocks(gateway: Gateway, settled: float) -> int:
    """Return the memory blocks of the gateway at rest."""
    claim(bool(in_time(gateway.is_at_rest)), "connections stayed though all clients are gone")
    gateway.metrics()  # from its first call on, it caches the labels of all topics
    time.sleep(settled)
    return gateway.report().blocks


def _claim_ends(gateway: Gateway, connects: int, refused: int) -> None:
    """Claim that each connection ended once, for the right reason."""
    ended = gateway.ended()
    claim(ended.total() == connects, f"{connects} connects, {ended.total()} ends")
    claim(ended[REFUSED] == refused, f"{refused} were refused, {ended[REFUSED]} counted")
    others = {reason for reason, number in ended.items() if number} - {REFUSED, *LEFT}
    claim(not others, f"ended by {sorted(others)}")


def table(it: Outcome) -> str:
    """Return a table of the figures and the looks."""
    first, last = it.plateaus
    figures = {
        "connects": f"{it.connects:,} in {it.seconds:.0f} s",
        "a second": f"{it.connects / it.seconds:,.0f}",
        "refused": f"{it.refused:,}",
        "lookups, redirects followed": f"{it.lookups:,}, {it.redirects:,}",
        "RSS at the start, at the end": ", ".join(map(mib, it.rss)),
        "RSS in the first and last quarter after the warm-up": f"{mib(first)}, {mib(last)}",
        "slope of the fit, for 100,000 connects": f"{it.slope * 100_000 / 1024:+.1f} KiB",
        "blocks of memory at rest, after the warm-up and at the end": ", ".join(
            f"{number:,}" for number in it.blocks
        ),
        "descriptors before, after": ", ".join(map(str, it.descriptors)),
    }
    looks = _some(it.looks, 12)
    line = report.table(
        ["connects", *(f"{look.connects // 1000}k" for look in looks)],
        [["RSS, MiB", *(f"{look.rss / MIB:.1f}" for look in looks)]],
    )
    return report.table(["churn", ""], list(figures.items())) + "\n\n" + line


def _some(looks: Sequence[Look], number: int) -> Sequence[Look]:
    """Return this many of them, evenly spread, including the last."""
    step = max(1, -(-len(looks) // number))
    return looks[::-1][::step][::-1]
