"""How long the data path stops while thousands of rules are reloaded, compared with quiet times.

One client makes round trips to the broker and back, one after the other; the longest of a window
shows the longest time without service. A window without a reload shows the influence of the machine
on a round trip.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.soak import brokers, report
from tests.soak.report import mib
from tests.soak.runner import Gateway, claim, in_time, running
from tests.soak.visits import Caller, pairs, ping

RULES = 2_000
ACCOUNTS = 1_000
"""Open producers, each under a limit of its own in every version of the rules."""

ROUNDS = 10
QUIET = 1.5
"""Seconds of a window: as long as a reload takes."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window's round trips, and the longest step of a task of the gateway, in milliseconds."""

    trips: list[float]
    step: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """`quiet` and `reloads` alternated. `took`: seconds of each reload; `rss`: before and after."""

    rules: int
    accounts: int
    quiet: list[Window]
    reloads: list[Window]
    took: list[float]
    rss: tuple[int, int]


def run(
    folder: Path, rules: int = RULES, accounts: int = ACCOUNTS, rounds: int = ROUNDS
) -> Outcome:
    """Claim that each reload brings the new version of all rules, and that no producer ends."""
    file = folder / "rules.yaml"
    write(file, rules, 0)
    settings = {"rules": str(file), "log": {"level": "info"}}
    with (
        brokers.in_process(folder, 1) as addresses,
        running(folder, addresses, settings) as gateway,
    ):
        callers = pairs(gateway.ports["passing"], accounts)
        before, quiet, reloads = gateway.rss, [], []
        gateway.report()  # of the time before
        for version in range(1, rounds + 1):
            quiet.append(_window(gateway, callers[0], _seconds(QUIET)))
            write(file, rules, version)
            gateway.hang_up()
            reloads.append(_window(gateway, callers[0], _reloads(gateway.log, version)))
        ping(callers)
        outcome = Outcome(
            rules, accounts, quiet, reloads, _took(gateway, rules), (before, gateway.rss)
        )
        for caller in callers:
            caller.close()
        claim(bool(in_time(gateway.is_at_rest)), "pairs stayed though their clients are gone")
    return outcome


def write(file: Path, number: int, version: int, more: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write named rules, one of them for each producer's topic, and `more`; the limits are far
    above the traffic."""
    rules = [
        {
            "id": f"r-{rule}",
            "match": {"topic": f"t-{rule}"},
            "limit": {"publish": {"messages": f"{1000 + version}/s", "bytes": "10MB/s"}},
            "per": ["principal"],
        }
        for rule in range(number)
    ]
    whole = file.with_suffix(".new")
    whole.write_text(json.dumps({"version": 1, "rules": [*rules, *more]}))
    whole.rename(file)


def _window(gateway: Gateway, caller: Caller, is_over: Callable[[], bool]) -> Window:
    trips = []
    while not is_over():
        began = time.perf_counter()
        ping([caller])
        trips.append(1000 * (time.perf_counter() - began))
    return Window(trips, gateway.report().step)


def _seconds(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


def _reloads(log: Path, number: int) -> Callable[[], bool]:
    """Return a condition: this many reloads are logged, and the old rules were released some time
    ago."""
    seen, until = 0, float("inf")

    def are_over() -> bool:
        nonlocal seen, until
        size = log.stat().st_size
        if size != seen and until == float("inf"):
            seen = size
            if len(list(_logged(log))) == number:
                until = time.monotonic() + QUIET / 5
        return time.monotonic() > until

    return are_over


def _logged(log: Path) -> Iterator[dict[str, float]]:
    """Yield the log line of each reload."""
    for line in log.read_text().splitlines():
        if '"rules_loaded"' in line:
            yield json.loads(line)


def _took(gateway: Gateway, rules: int) -> list[float]:
    logged = list(_logged(gateway.log))
    claim(all(it["changed"] == rules for it in logged), "a reload did not bring all rules")
    return [it["seconds"] for it in logged]


def table(it: Outcome) -> str:
    """Return the table and further figures of the reloads. `longest`: of a window, the median of
    all; `step`: the longest of a task of the gateway, in CPU time."""
    head = ["windows", "number", "round trips", "median", "99 %", "99.9 %"]
    head += ["longest", "longest of all", "step"]
    rows = [_row("nothing happens", it.quiet), _row("a reload", it.reloads)]
    known = (
        f"{it.rules} rules, all changed; {it.accounts} open producers; a reload took "
        f"{median(it.took):.2f} s (longest {max(it.took):.2f} s); RSS before and after "
        f"{', '.join(map(mib, it.rss))}"
    )
    return report.table(head, rows) + f"\n\n{known}"


def _row(name: str, windows: Sequence[Window]) -> list[str]:
    trips = sorted(trip for window in windows for trip in window.trips)
    longest = [max(window.trips) for window in windows]
    figures = [trips[int(len(trips) * part) - 1] for part in (0.5, 0.99, 0.999)]
    figures += [median(longest), max(longest), max(window.step for window in windows)]
    return [
        name, str(len(windows)), f"{len(trips):,}", *(f"{figure:.2f} ms" for figure in figures)
    ]  # fmt: skip
