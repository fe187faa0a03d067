"""Forecasts: in how many days a limit, a disk or a step of a price is reached. No Spark, no clock.

A series is one number a day. Its trend is the median of the slopes between all pairs of days (Theil
and Sen), which a day of an incident hardly moves; the weekday's part is the median of what is left
on it. The error is what the same would have been off by in the past: at each of some days before, a
forecast from the days until then is compared with what came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 14
"""Days of a series: two of each weekday."""

MOST = 120
"""Days that are looked at, the latest: the pairs of more take seconds for thousands of tenants, and
older ones say little."""

HORIZON = 365
"""Days ahead. What is reached later is not reached, as far as anybody can say."""

PAST = 7
"""Days ahead of the forecasts of the past that the error is of."""


@dataclass(frozen=True, slots=True)
class Trend:
    """`level`: of the last day, without its weekday. `slope`: by day. `week`: what a weekday has
    above or below, by the number of days after the last one, modulo 7."""

    level: float
    slope: float
    week: tuple[float, ...]

    def at(self, ahead: int) -> float:
        """Return what is expected so many days after the last one; never below 0."""
        return max(0.0, self.level + self.slope * ahead + self.week[ahead % 7])


@dataclass(frozen=True, slots=True)
class Forecast:
    """`days`: until the mark is reached for the first time; None: not within `HORIZON`. `error`:
    the median of how far forecasts of the past were off, as a part of what came; None if there
    were too few days to know."""

    trend: Trend
    days: int | None
    error: float | None


def trend_of(series: Sequence[float]) -> Trend | None:
    """Return the trend of a series, a number for each day; None if it is too short."""
    series = series[-MOST:]
    if len(series) < LEAST:
        return None
    last = len(series) - 1
    # Weeks apart, so that weekdays do not look like growth.
    slopes = [
        (series[later] - series[earlier]) / (later - earlier)
        for earlier, later in combinations(range(len(series)), 2)
        if (later - earlier) % 7 == 0
    ]
    slope = median(slopes)
    flat = [value + slope * (last - at) for at, value in enumerate(series)]
    level = median(flat)
    week = [median(flat[it::7]) - level for it in range(7)]
    # Of weekdays by their place in the series; from here on by the days after the last one.
    return Trend(level, slope, tuple(week[(last + ahead) % 7] for ahead in range(7)))


def forecast(series: Sequence[float], mark: float) -> Forecast | None:
    """Return when a mark is reached by what is seen so far; None if the series is too short."""
    trend = trend_of(series)
    if trend is None:
        return None
    reached = (ahead for ahead in range(1, HORIZON + 1) if trend.at(ahead) >= mark)
    return Forecast(trend, next(reached, None), error(series))


def error(series: Sequence[float]) -> float | None:
    """Return how far forecasts of `PAST` days were off, as a part of what came."""
    misses = []
    for end in range(LEAST, len(series) - PAST + 1):
        before = trend_of(series[:end])
        came = series[end + PAST - 1]
        if before is not None and came > 0:
            misses.append(abs(before.at(PAST) - came) / came)
    found = median(misses) if misses else None
    return found if found is None or math.isfinite(found) else None
