"""Chargeback: what tenants used in a month becomes figures that `billing` prices.

Tables hold sums by day, so a month is some thousand rows for each tenant, which are summed up here
and brought to the driver one tenant after the other.

Connections have no tenant: a client may use topics of several. The time of a principal's open
connections is divided among the tenants whose topics it used in the month, by bytes; the rest, and
that of a principal that used none, is nobody's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.billing.amounts import UNALLOCATED, Used
from gateway.pipeline.billing.figures import Completeness, Day, Topic, Use
from gateway.pipeline.missing import gaps
from gateway.telemetry.figures import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.lake import Lake, State

TOPICS = 1000
"""Topics of a tenant whose figures its invoice knows: those with most bytes. It shows ten."""

BILLED = ("daily", "stored_daily")
"""The tables with days that bills are made of, beside `completeness`, which is kept for ever."""

FIGURES = ("bytes_in", "bytes_out", "msgs_in", "msgs_out")


class _Row(NamedTuple):
    tenant: str
    day: str
    bytes_in: int
    bytes_out: int
    msgs_in: int
    msgs_out: int


@dataclass(frozen=True, slots=True)
class MonthlyUse:
    """All of a month. `used`: a row for each tenant. `uses`: what its invoice shows beside.
    `missing`: how many records are missing, by the days that lack some, in order."""

    used: tuple[Used, ...]
    uses: Mapping[str, Use]
    completeness: Completeness
    missing: Mapping[date, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the tables have nothing of the month."""
        return not self.used and not self.completeness.present


def has_sums(state: State) -> bool:
    """Return whether there is anything that bills are made of."""
    return any(state.days.get(it) for it in (*BILLED, "completeness"))


def gone_before(state: State, month: Month) -> str | None:
    """Return the day before which sums are gone, if days of the month may be among them. What is
    left would be billed as if it were all."""
    before = max(state.retired.get(it, "") for it in BILLED)
    return before if month.first.isoformat() < before else None


def month_of(
    lake: Lake,
    month: Month,
    stored: Mapping[str, int] | None = None,
    *,
    state: State | None = None,
) -> MonthlyUse:
    """Return what was used in a month. `stored`: byte-hours by tenant. `state`: an earlier view of
    the tables."""
    state = state or lake.state()
    days = [it.isoformat() for it in month.days()]
    daily = lake.read("daily", days, state=state).persist()
    try:
        traffic = traffic_of(daily)
        by_day = [_Row(*row) for row in summed(traffic, "tenant", "day").toLocalIterator()]
        connected = _times(daily, traffic)
        topics = _topics(traffic)
    finally:
        daily.unpersist()
    complete = _completeness(gaps(lake.read("completeness", state=state)), month)
    return _gathered(month, by_day, connected, topics, complete, stored or {})


def traffic_of(daily: DataFrame) -> DataFrame:
    """Return sends and deliveries as figures in and out, by what they are summed up by. Those of
    no tenant have the tenant ""."""
    is_in = F.col("op") == "send"
    named = F.when(F.col("tenant") == OTHER, None).otherwise(F.col("tenant"))
    used = daily.where(F.col("op").isin("send", "deliver"))
    used = used.withColumn("tenant", F.coalesce(named, F.lit(UNALLOCATED)))
    for figure, column in (("bytes", "bytes_wire"), ("msgs", "msgs")):
        used = used.withColumn(f"{figure}_in", F.when(is_in, F.col(column)).otherwise(0))
        used = used.withColumn(f"{figure}_out", F.when(is_in, 0).otherwise(F.col(column)))
    return used


def summed(traffic: DataFrame, *by: str) -> DataFrame:
    """Return the figures by some columns, in their order."""
    sums = traffic.groupBy(*by).agg(*(F.sum(it).alias(it) for it in FIGURES))
    return sums.orderBy(*by)


def _times(daily: DataFrame, traffic: DataFrame) -> dict[tuple[str, str], int]:
    """Return the milliseconds of open connections by tenant and day."""
    bytes = F.col("bytes_in") + F.col("bytes_out")
    known = traffic.where((F.col("tenant") != UNALLOCATED) & F.col("principal").isNotNull())
    parts = known.groupBy("principal", "tenant").agg(F.sum(bytes).alias("part"))
    parts = parts.where(F.col("part") > 0)
    open_times = (
        daily.where(F.col("op") == "connect")
        .groupBy("principal", "day")
        .agg(F.sum("open_ms").alias("open_ms"))
    )
    each = open_times.join(parts, "principal", "left")
    whole = F.sum("part").over(Window.partitionBy("principal", "day"))
    each = each.withColumn("whole", whole).where(F.col("open_ms") > 0)
    # The product passes 64 bits, so it is a decimal, of 37 digits.
    product = F.col("open_ms").cast("decimal(18,0)") * F.col("part").cast("decimal(18,0)")
    share = F.floor(product / F.col("whole").cast("decimal(18,0)")).cast("bigint")
    divided = each.withColumn("share", share).where(F.col("tenant").isNotNull())
    sums = divided.groupBy("tenant", "day").agg(F.sum("share").alias("share"))
    found = {(row.tenant, row.day): int(row.share) for row in sums.toLocalIterator()}
    # What the division leaves is nobody's, as are connections of those who used no topic.
    given = Counter[str]()
    for (_, day), ms in found.items():
        given[day] += ms
    for row in open_times.groupBy("day").agg(F.sum("open_ms").alias("ms")).collect():
        found[UNALLOCATED, row.day] = row.ms - given[row.day]
    return found


def _topics(traffic: DataFrame) -> dict[str, list[Topic]]:
    """Return the topics with most bytes, by tenant."""
    sums = summed(traffic.where(F.col("topic").isNotNull()), "tenant", "topic")
    most = Window.partitionBy("tenant").orderBy(F.desc(F.expr("bytes_in + bytes_out")), "topic")
    ranked = sums.withColumn("rank", F.row_number().over(most)).where(F.col("rank") <= TOPICS)
    found = defaultdict[str, list[Topic]](list)
    for row in ranked.orderBy("tenant", "rank").toLocalIterator():
        found[row.tenant].append(Topic(row.topic, *(row[it] for it in FIGURES)))
    return found


def _completeness(gaps: DataFrame, month: Month) -> dict[date, Completeness]:
    """Return how many records of usage there are on each day of a month."""
    first, last = month.first.isoformat(), month.days()[-1].isoformat()
    of_month = gaps.where((F.col("stream") == "usage") & F.col("day").between(first, last))
    return {
        date.fromisoformat(row.day): Completeness(row.records, row.records + row.missing)
        for row in of_month.collect()
    }


def _gathered(
    month: Month,
    rows: Iterable[_Row],
    connected: Mapping[tuple[str, str], int],
    topics: Mapping[str, list[Topic]],
    complete: Mapping[date, Completeness],
    stored: Mapping[str, int],
) -> MonthlyUse:
    by_tenant = defaultdict[str, dict[str, _Row]](dict)
    for row in rows:
        by_tenant[row.tenant][row.day] = row
    names = {*by_tenant, *(tenant for tenant, _ in connected), *stored}
    whole = Completeness(
        sum(it.present for it in complete.values()), sum(it.expected for it in complete.values())
    )
    uses, used = {}, []
    for tenant in sorted(names):
        days = tuple(_days(month, tenant, by_tenant[tenant], connected, complete))
        uses[tenant] = Use(whole, days, tuple(topics.get(tenant, ())))
        sums = {it: sum(getattr(day, it) for day in days) for it in (*FIGURES, "connection_ms")}
        used.append(Used(tenant, **sums, stored_byte_hours=stored.get(tenant, 0)))
    missing = {day: it.missing for day, it in sorted(complete.items()) if it.missing}
    return MonthlyUse(tuple(used), uses, whole, missing)


def _days(
    month: Month,
    tenant: str,
    rows: Mapping[str, _Row],
    connected: Mapping[tuple[str, str], int],
    complete: Mapping[date, Completeness],
) -> Iterator[Day]:
    for day in month.days():
        row = rows.get(day.isoformat(), _Row(tenant, "", 0, 0, 0, 0))
        open_ms = connected.get((tenant, day.isoformat()), 0)
        yield Day(day, *row[2:], open_ms, complete.get(day, Completeness(0, 0)))
