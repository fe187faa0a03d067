"""Forecast: when tenants reach their limits or the next step of a price, and clusters their disks.

Of limits the series is the highest rate of an interval on each day; of prices the sums of days, of
which those of this month add up; of disks what is stored at the end of each day.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.billing.meters import METERS
from gateway.pipeline.chargeback import FIGURES, summed, traffic_of
from gateway.pipeline.forecasting import HORIZON, MOST, Forecast, error, forecast, trend_of
from gateway.pipeline.limits.deciding import What
from gateway.pipeline.recommend import SOURCES, rates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from gateway.pipeline.billing.prices import RateCard
    from gateway.pipeline.lake import Lake
    from gateway.policy.rules import Rule

TENANTS = 10_000
"""Tenants that are looked at: those with most traffic. Each takes a tenth of a second at most."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What may be reached. `who`: a tenant or a cluster. `what`: for people."""

    who: str
    what: str
    value: float


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a mark; `forecast` is None where there are too few days."""

    mark: Mark
    forecast: Forecast | None


Series = dict[str, dict[str, float]]
"""Numbers by who and day."""


def latest(lake: Lake, table: str) -> list[str]:
    """Return the latest days of a table, as many as forecasts look at."""
    return sorted(lake.state().days.get(table, {}))[-MOST:]


def of_limits(lake: Lake, rules: Iterable[Rule]) -> Iterator[Expected]:
    """Yield when tenants reach the limits that rules have for each of them by name."""
    marks = defaultdict[What, dict[str, Mark]](dict)
    for rule in rules:
        for dimension, value in rule.limits:
            if dimension in {*What} and len(rule.match.tenant) == 1:
                (tenant,) = rule.match.tenant
                marks[What(dimension)][tenant] = Mark(tenant, f"{rule.id}: {dimension}", value)
    usage = lake.read("usage", latest(lake, "usage"))
    for what, by_tenant in marks.items():
        rates = rates_of(usage, SOURCES[what]).groupBy("tenant", "day")
        found = _series(rates.agg(F.max("rate").alias("value")), "tenant")
        yield from _expected(by_tenant, found)


def of_disks(lake: Lake, disks: Mapping[str, int]) -> Iterator[Expected]:
    """Yield when clusters store as much as their disks hold. `disks`: bytes by cluster."""
    stored = lake.read("stored_daily", latest(lake, "stored_daily")).groupBy("cluster", "day")
    found = _series(stored.agg(F.sum("bytes_last").alias("value")), "cluster")
    marks = {it: Mark(it, "disk, bytes", size) for it, size in disks.items()}
    yield from _expected(marks, found)


def of_prices(lake: Lake, card: RateCard, today: date) -> Iterator[Expected]:
    """Yield when tenants reach the next tier of a price in this month, if they do."""
    card = card.on(today)
    days = latest(lake, "daily")
    sums = summed(traffic_of(lake.read("daily", days)), "tenant", "day")
    for meter in (it for it in METERS if it.figure in FIGURES):
        found = _series(sums.withColumn("value", F.col(meter.figure).cast("double")), "tenant")
        for tenant, by_day in found.items():
            price = card.terms(tenant or None).prices.get(meter.price)
            so_far = sum(value for day, value in by_day.items() if day[:7] == f"{today:%Y-%m}")
            tiers = () if price is None else price.tiers
            above = (float(it.above) * meter.per for it in tiers)
            step = next((it for it in above if it > so_far), None)
            if step is not None:
                mark = Mark(tenant, f"{meter.price} above {step / meter.per:g} {meter.unit}", step)
                yield Expected(mark, _summed_up(_filled(by_day), step - so_far, today))


def _summed_up(series: list[float], left: float, today: date) -> Forecast | None:
    """Return when what is left is used up, in this month."""
    trend = trend_of(series)
    if trend is None:
        return None
    for ahead in count(1):
        if (today + timedelta(days=ahead)).month != today.month or ahead > HORIZON:
            break
        left -= trend.at(ahead)
        if left <= 0:
            return Forecast(trend, ahead, error(series))
    return Forecast(trend, None, error(series))


def _series(values: DataFrame, who: str) -> Series:
    """Return the numbers of those with the largest sums. `values`: with `day` and `value`."""
    largest = values.groupBy(who).agg(F.sum("value").alias("sum"))
    largest = largest.orderBy(F.desc("sum"), who).limit(TENANTS).select(who)
    found: Series = defaultdict(dict)
    for row in values.join(largest, who).select(who, "day", "value").toLocalIterator():
        found[row[who]][row.day] = float(row.value)
    return found


def _expected(marks: Mapping[str, Mark], found: Series) -> Iterator[Expected]:
    for who in sorted(marks):
        mark = marks[who]
        series = _filled(found[who]) if who in found else []
        yield Expected(mark, forecast(series, mark.value))


def _filled(by_day: Mapping[str, float]) -> list[float]:
    """Return a number for each day from the first to the last; 0 where there is none."""
    first, last = (date.fromisoformat(it(by_day)) for it in (min, max))
    days = ((first + timedelta(days=it)).isoformat() for it in range((last - first).days + 1))
    return [by_day.get(day, 0.0) for day in days]
