"""The results as Markdown: a line for each fault, kind of brokers, client and way, with all rounds
combined."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from tests.soak.report import table

from .results import Outcome, Trial

Cells = tuple[str, ...]

SUMS = {
    "acknowledged": "acknowledged",
    "received": "received",
    "missing": "missing",
    "doubled": "stored twice",
    "again": "delivered again",
    "disordered": "out of order",
    "unconfirmed": "not confirmed",
}
HEAD = (
    *("fault", "brokers", "client", "way", "rounds", *SUMS.values()),
    *("longest send: median", "most", "errors"),
)
ROUNDS = ("fault", "brokers", "way", "stored twice, by round")
GATEWAYS = (
    *("fault", "brokers", "rounds", "ended", "lookups", "redirects", "tracebacks", "given up"),
    "load of the machine: median",
)


def clients(trials: Sequence[Trial]) -> str:
    """Return a table of each client library, and of all of them."""
    groups: dict[Cells, list[tuple[str, Outcome]]] = defaultdict(list)
    for trial in trials:
        for it in trial.outcomes:
            for client in (it.client, "all"):
                groups[trial.fault, trial.brokers, client, it.way].append((trial.at, it))
    rows = ((*key, *_cells(group)) for key, group in sorted(groups.items()))
    return table(HEAD, rows)


def rounds(trials: Sequence[Trial]) -> str:
    """Return a table of the differences between rounds."""
    groups: dict[Cells, list[int]] = defaultdict(list)
    for trial in trials:
        doubled: Counter[str] = Counter()
        for it in trial.outcomes:
            doubled[it.way] += it.doubled
        for way, count in doubled.items():
            groups[trial.fault, trial.brokers, way].append(count)
    rows = ((*key, " ".join(map(str, counts))) for key, counts in sorted(groups.items()))
    return table(ROUNDS, rows)


def gateways(trials: Sequence[Trial]) -> str:
    """Return a table of the gateways' reports, and of the load of the machine."""
    groups: dict[Cells, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.fault, trial.brokers].append(trial)
    return table(GATEWAYS, [(*key, *_told(group)) for key, group in sorted(groups.items())])


def _cells(group: Sequence[tuple[str, Outcome]]) -> Cells:
    told = [it for _, it in group if not it.broken]
    sums = [str(sum(getattr(it, name) for it in told)) for name in SUMS]
    longest = [it.longest for it in told] or [0.0]
    times = (f"{value:.2f}" for value in (median(longest), max(longest)))
    errors = Counter(error for it in told for error in _kinds(it.errors))
    errors.update("no report" for _, it in group if it.broken)
    return str(len({at for at, _ in group})), *sums, *times, _counts(errors)


def _kinds(errors: Sequence[str]) -> set[str]:
    """Return the errors without what differs between messages."""
    return {error.partition(": ")[0] for error in errors}


def _told(trials: Sequence[Trial]) -> Cells:
    ended: Counter[str] = Counter()
    for trial in trials:
        ended.update(trial.gateway.get("ended", {}))
    names = ("lookups", "redirects", "tracebacks")
    figures = [f"{sum(_figure(trial.gateway, name) for trial in trials):.0f}" for name in names]
    failures = str(sum(bool(trial.failure) for trial in trials))
    load = median(trial.facts.get("load", 0.0) for trial in trials)
    return str(len(trials)), _counts(ended), *figures, failures, f"{load:.1f}"


def _figure(gateway: Any, name: str) -> float:
    return float(gateway.get(name, 0))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{what.replace('|', '/')} {count}" for what, count in sorted(counter.items()))
