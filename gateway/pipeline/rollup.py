"""Rollup: usage by hour and by day, latencies, and how complete the records are.

A day is summed up anew when its records have changed. Sums and the most of each key are exact;
histograms are added up bucket by bucket, and quantiles are read from the sums, so a quantile of a
day is that of all its waits. `networks` counts the networks of a key's clients.

Spark adds up in part before it sends rows to each other, so a topic with half of all traffic is no
more work for one task than any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.schema import KEYS, PEAKS, SUMS
from gateway.telemetry.latency import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from gateway.pipeline.lake import Lake, State

HOUR_MS = 3_600_000

QUANTILES = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}

TABLES = ("hourly", "daily", "latency_hourly", "latency_daily", "completeness")


def rollup(lake: Lake, now_ms: int) -> list[str]:
    """Sum up all days whose records have changed; return these days."""
    state = lake.state()
    days = stale(state)
    if not days:
        return []
    usage = lake.read("usage", days, state=state)
    hours = usage.withColumn("hour_ms", F.col("start_ms") - F.col("start_ms") % HOUR_MS)
    traffic, waits = hours.where(F.col("op") != "latency"), hours.where(F.col("op") == "latency")
    change = lake.change("rollup", now_ms, state)
    change.replace("hourly", summed(traffic, "hour_ms"), days)
    change.replace("daily", summed(traffic), days)
    change.replace("latency_hourly", waited(waits, "hour_ms"), days)
    change.replace("latency_daily", waited(waits), days)
    events = lake.read("events", days, state=state)
    seen = numbered("usage", usage).unionByName(numbered("events", events))
    change.replace("completeness", seen, days)
    change.commit()
    return days


def stale(state: State) -> list[str]:
    """Return the days whose records are newer than their sums. Generations are in the order of
    their commits."""
    found = set[str]()
    done = state.days.get("completeness", {})
    for stream in ("usage", "events"):
        for day, generations in state.days.get(stream, {}).items():
            if generations > done.get(day, []):
                found.add(day)
    return sorted(found)


def summed(usage: DataFrame, *times: str) -> DataFrame:
    """Return the sums of usage by key, day and other times."""
    return usage.groupBy(*KEYS, *times, "day").agg(
        *(F.sum(name).alias(name) for name in SUMS),
        *(F.max(name).alias(name) for name in PEAKS),
        F.count_distinct("client_net").alias("networks"),
        F.count(F.lit(1)).alias("records"),
    )


def waited(latencies: DataFrame, *times: str) -> DataFrame:
    """Return the histograms by listener, tenant and what was waited for, with their quantiles."""
    size = len(BOUNDS) + 1
    buckets = [F.coalesce(F.get("lat_bucket", F.lit(at)), F.lit(0)) for at in range(size)]
    sums = latencies.groupBy("listener", "tenant", "lat_what", *times, "day").agg(
        F.array(*(F.sum(it) for it in buckets)).alias("lat_bucket"),
        F.sum("lat_count").alias("lat_count"),
        F.sum("lat_sum_us").alias("lat_sum_us"),
    )
    return sums.select("*", *(quantile(part).alias(name) for name, part in QUANTILES.items()))


def quantile(part: float, bounds: Sequence[float] = BOUNDS) -> Column:
    """Return a quantile of `lat_bucket`, in seconds: within the bucket that it falls into, between
    its bounds in proportion, as Prometheus does. Beyond the last bound it is that bound; null
    without waits."""
    ends = zip(((0.0, *bounds), (*bounds, bounds[-1])), _ENDS, strict=True)
    columns = (F.array(*map(F.lit, values)).alias(name) for values, name in ends)
    buckets = F.arrays_zip("lat_bucket", *columns)

    def reach(state: Column, bucket: Column) -> Column:
        count, before = F.coalesce(bucket["lat_bucket"], F.lit(0)), state["before"]
        after = before + count
        is_here = state["value"].isNull() & (count > 0) & (after >= state["rank"])
        low, high = (bucket[name] for name in _ENDS)
        value = low + F.try_divide(state["rank"] - before, count) * (high - low)
        found = F.when(is_here, value).otherwise(state["value"])
        return F.struct(state["rank"].alias("rank"), after.alias("before"), found.alias("value"))

    # The rank is computed once: an expression in a function of elements is computed for each.
    rank, none = (_sum("lat_bucket") * part).alias("rank"), F.lit(None).cast("double")
    start = F.struct(rank, F.lit(0).cast("bigint").alias("before"), none.alias("value"))
    return F.aggregate(buckets, start, reach, lambda state: state["value"])


_ENDS = ("low", "high")
"""Of a bucket, in seconds."""


def _sum(numbers: Column | str) -> Column:
    """Return the sum of an array."""
    return F.aggregate(numbers, F.lit(0).cast("bigint"), lambda before, it: before + it)


def numbered(stream: str, records: DataFrame) -> DataFrame:
    """Return which numbers of records there are, by gateway, process and day."""
    return records.groupBy("gw", "boot", "day").agg(
        F.lit(stream).alias("stream"),
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
        F.count(F.lit(1)).alias("records"),
    )
