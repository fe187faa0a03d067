"""Recommend: limits for each tenant, from the rates of the past weeks.

The rate of an interval is that of all gateways together: intervals of all end at the same time.
What counts is what a limit would count: of sends what passed on, of deliveries what was delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.limits.deciding import Limit, Policy, Seen, Undecided, What, decide
from gateway.pipeline.limits.writing import identifier
from gateway.telemetry.figures import OTHER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

TENANTS = 10_000
"""Tenants that limits are recommended for: those with most traffic. They pass through the driver,
and a file of rules; gateways measure a thousand apart."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rates of a limit come from. `peak`: of one second."""

    op: str
    amount: str
    peak: str


SOURCES = {
    What.PUBLISH_MESSAGES: Source("send", "sent_msgs", "peak_msgs_1s"),
    What.PUBLISH_BYTES: Source("send", "sent_bytes", "peak_bytes_1s"),
    What.DISPATCH_MESSAGES: Source("deliver", "msgs", "peak_msgs_1s"),
    What.DISPATCH_BYTES: Source("deliver", "bytes_wire", "peak_bytes_1s"),
}


def recommend(
    usage: DataFrame, policy: Policy, current: Mapping[str, int]
) -> tuple[list[Limit], list[Undecided]]:
    """Return limits, and those for which there is none. `usage`: records of the weeks to look at.
    `current`: rates that are recommended now, by the id of their rule."""
    limits, undecided = list[Limit](), list[Undecided]()
    for seen in history(usage, policy.quantile):
        found = decide(seen, policy, current.get(identifier(seen.tenant, seen.what)))
        if isinstance(found, Limit):
            limits.append(found)
        else:
            undecided.append(found)
    return limits, undecided


def history(usage: DataFrame, quantile: float) -> Sequence[Seen]:
    """Return what was seen of each tenant, in the order of their names."""
    found = list[Seen]()
    for what, source in SOURCES.items():
        rates = rates_of(usage, source)
        sums = rates.groupBy("tenant").agg(
            F.count_distinct("day").alias("days"),
            F.count(F.lit(1)).alias("intervals"),
            F.percentile("rate", quantile).alias("usual"),
            F.max("rate").alias("most"),
            F.max("peak").alias("peak"),
            F.max(F.when(F.col("waited"), F.col("rate"))).alias("held"),
            F.sum("amount").alias("amount"),
        )
        rows = sums.orderBy(F.desc("amount"), "tenant").limit(TENANTS).collect()
        found += (
            Seen(
                row.tenant,
                what,
                row.days,
                row.intervals,
                row.usual,
                row.most,
                float(row.peak),
                row.held or 0.0,
            )
            for row in rows
        )
    return sorted(found, key=lambda it: (it.tenant, it.what))


def rates_of(usage: DataFrame, source: Source) -> DataFrame:
    """Return `tenant`, `day`, `start_ms`, `dur_ms`, `amount`, `rate` per second, `peak` and whether
    frames `waited`, of each interval with traffic."""
    named = F.col("tenant").isNotNull() & (F.col("tenant") != OTHER)
    used = usage.where((F.col("op") == source.op) & named & (F.col("dur_ms") > 0))
    each = used.groupBy("tenant", "day", "start_ms", "dur_ms").agg(
        F.sum(source.amount).alias("amount"),
        # Keys peak in different seconds, so their sum is the most that can have been.
        F.sum(source.peak).alias("peak"),
        (F.sum("throttle_count") > 0).alias("waited"),
    )
    busy = each.where(F.col("amount") > 0)
    return busy.withColumn("rate", _per_second("amount"))


def _per_second(amount: str) -> Column:
    return F.col(amount) * 1000.0 / F.col("dur_ms")
