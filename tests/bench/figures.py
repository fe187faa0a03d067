"""Lines of the table computed from samples. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from tests.bench.rows import SLACK, LifeFigure, Row

PEER = "HAProxy"
"""The proxy that all others are compared with."""

OURS = "gateway"

EVERYTHING, NOTHING = "everything on", "everything off"
"""The gateway that tells all that it can of its clients, and the one that tells nothing."""

BESIDE = "gateway beside"
"""That of another checkout."""

RELAY = "relay, copying"
"""The relay in C that reads nothing: what a proxy can reach."""

KROXYLICIOUS = "Kroxylicious"

COMPARED: Mapping[tuple[str, str], float | None] = {
    (EVERYTHING, NOTHING): 0.03,
    (OURS, BESIDE): None,
}
"""Two proxies, and by which part the first one may take more CPU than the second."""

TIMES: Mapping[tuple[str, str], float | None] = {(KROXYLICIOUS, OURS): 3.0}
"""Two proxies, and how many times the CPU of the second one the first may be held to take."""

DIRECT = "direct"
"""No proxy between: the load generator connects to itself."""

Medians = Mapping[str, float]
"""By name of the proxy."""


class Verdict(StrEnum):
    """NEAR: misses the goal by less than machines vary."""

    MET = "met"
    NEAR = "within 15 %"
    MISSED = "missed"
    NONE = "-"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table. `cells`: by name of the proxy; `measured`: the gateway's figure for
    `goal`."""

    title: str
    cells: Mapping[str, str]
    measured: str
    goal: str
    verdict: Verdict


def medians(samples: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the medians by name of the proxy."""
    return {proxy: median(values) for proxy, values in by_name(samples).items()}


def by_name(samples: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """Return the samples by name of the proxy, in their order."""
    by_proxy = defaultdict[str, list[float]](list)
    for proxy, value in samples:
        by_proxy[proxy].append(value)
    return by_proxy


def judged(value: float, goal: float | None, *, at_least: bool) -> Verdict:
    """Return the verdict. Missing the goal by less than machines vary is not a miss."""
    if goal is None:
        return Verdict.NONE
    higher, lower = (value, goal) if at_least else (goal, value)
    if higher >= lower:
        return Verdict.MET
    return Verdict.NEAR if higher >= lower * SLACK else Verdict.MISSED


def cpu_line(row: Row, us_per_frame: Medians) -> Line:
    """Return a line of microseconds of CPU per frame; above 1: less than HAProxy."""
    ratios = {proxy: us_per_frame[PEER] / value for proxy, value in us_per_frame.items()}
    goal = "-" if row.goal is None else f">= {row.goal:g}"
    verdict = judged(ratios[OURS], row.goal, at_least=True)
    return Line(row.title, _cells(us_per_frame, ratios), f"{ratios[OURS]:.2f}", goal, verdict)


def latency_line(row: Row, p50_us: Medians) -> Line:
    """Return a line of microseconds that each proxy adds to the median round trip; above 1: more
    than HAProxy."""
    direct = p50_us[DIRECT]
    added = {proxy: value - direct for proxy, value in p50_us.items() if proxy != DIRECT}
    ratios = {proxy: value / added[PEER] for proxy, value in added.items()}
    goal = "-" if row.goal is None else f"<= {row.goal:g}"
    verdict = judged(ratios[OURS], row.goal, at_least=False)
    return Line(row.title, _cells(added, ratios), f"{ratios[OURS]:.2f}", goal, verdict)


def added_line(
    title: str, samples: Iterable[tuple[str, float]], compared: tuple[str, str], goal: float | None
) -> Line:
    """Return a line of the part that one of two proxies takes more than the other: the median of
    all rounds, with the least and the most. A round has a sample of each, one soon after the
    other, so what slows the machine for longer changes both."""
    by_proxy = by_name(samples)
    one, other = (by_proxy[name] for name in compared)
    added = sorted(value / base - 1 for value, base in zip(one, other, strict=True))
    middle = median(added)
    verdict = Verdict.NONE
    if goal is not None:
        verdict = Verdict.MET if middle <= goal else Verdict.MISSED
    cells = {name: f"{readable(median(by_proxy[name]))} us" for name in compared}
    measured = f"{middle:+.1%} ({added[0]:+.1%} to {added[-1]:+.1%})"
    return Line(title, cells, measured, "-" if goal is None else f"<= {goal:+.0%}", verdict)


def times_line(
    title: str, samples: Iterable[tuple[str, float]], compared: tuple[str, str], goal: float | None
) -> Line:
    """Return a line of how many times the CPU of the other proxy one takes: the median of all
    rounds, with the least and the most, as in `added_line`."""
    by_proxy = by_name(samples)
    one, other = (by_proxy[name] for name in compared)
    times = sorted(value / base for value, base in zip(one, other, strict=True))
    middle = median(times)
    verdict = Verdict.NONE
    if goal is not None:
        verdict = Verdict.MET if middle >= goal else Verdict.MISSED
    cells = {name: f"{readable(median(by_proxy[name]))} us" for name in compared}
    measured = f"{middle:.2f} ({times[0]:.2f} to {times[-1]:.2f})"
    return Line(title, cells, measured, "-" if goal is None else f">= {goal:g}", verdict)


def life_line(figure: LifeFigure, values: Medians) -> Line:
    """Return a line of a figure as it is; HAProxy's is shown, and not compared."""
    scaled = {proxy: value * figure.scale for proxy, value in values.items()}
    cells = {proxy: f"{readable(value)} {figure.unit}" for proxy, value in scaled.items()}
    goal = "-" if figure.goal is None else f"<= {figure.goal:g} {figure.unit}"
    verdict = judged(scaled[OURS], figure.goal, at_least=False)
    return Line(figure.title, cells, cells[OURS], goal, verdict)


def _cells(microseconds: Medians, ratios: Medians) -> dict[str, str]:
    """Return the cells. Proxies beside HAProxy and the gateway have no column for their ratio."""
    return {
        proxy: f"{readable(value)} us"
        + ("" if proxy in (PEER, OURS) else f" ({ratios[proxy]:.2f})")
        for proxy, value in microseconds.items()
    }


def readable(value: float) -> str:
    """Return a number with three significant digits."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"
