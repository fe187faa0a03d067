"""Backtest: estimates what limits would have held in the past weeks.

A limit is a bucket: what passes fills it, it drains at the rate, and what does not fit waits. How
much is in it at a time is the running sum of what came, less what could have drained, minus the
least that this sum has been: so the whole history is one window function over the intervals of a
tenant. Between two intervals nothing comes, and the sum has its low points there.

An interval is known by its sum and by its highest second. Within it traffic counts as even; where
that fits, the highest second alone may not. What else happens within ten seconds is not seen.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.given import given
from gateway.pipeline.limits.buckets import Bucket, Held
from gateway.pipeline.limits.deciding import What
from gateway.pipeline.recommend import SOURCES, rates_of
from gateway.pipeline.schema import struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

_BUCKETS = struct("bucket bigint", "what string", "only string", "limit double", "burst double")

_OWN = ("bucket", "tenant")


def backtest(usage: DataFrame, buckets: Sequence[Bucket]) -> list[Held]:
    """Return what limits would have held, in their order. `usage`: records of the weeks to look
    at."""
    if not buckets:
        return []
    sums = _summed(intervals(usage, buckets))
    found = {row.bucket: row for row in sums.collect()}
    return [
        Held(it.rule, it.what, 0, 0, 0, 0.0, 0.0, 0.0, None, 0.0)
        if (row := found.get(number)) is None
        else Held(
            *(it.rule, it.what, row.intervals, row.exceeded, row.waited),
            *(row.amount, row.beyond, row.seconds),
            *(row.worst_day if row.worst_seconds else None, row.worst_seconds),
        )
        for number, it in enumerate(buckets)
    ]


def intervals(usage: DataFrame, buckets: Sequence[Bucket]) -> DataFrame:
    """Return the intervals that limits are for, each with what would have waited: `bucket` (its
    place), `tenant`, `day`, `start_ms`, `amount`, `filled` (units in the bucket at the end, those
    that wait included), `beyond` (units) and `seconds`, and whether frames `waited`."""
    rows = [
        dict(zip(_BUCKETS.fieldNames(), (number, it.what, tenant, it.rate, it.burst), strict=True))
        for number, it in enumerate(buckets)
        for tenant in it.tenants or (None,)
    ]
    limits = given(usage.sparkSession, rows, _BUCKETS)
    used = [
        rates_of(usage, SOURCES[what]).withColumn("kind", F.lit(str(what)))
        for what in What
        if any(it.what is what for it in buckets)
    ]
    rates = reduce(lambda one, other: one.unionByName(other), used)
    is_for = F.col("only").isNull() | (F.col("only") == F.col("tenant"))
    limited = rates.join(F.broadcast(limits), (F.col("kind") == F.col("what")) & is_for)
    return _held(_filled(limited)).select(
        *_OWN, *("day", "start_ms", "amount", "filled", "beyond", "seconds", "waited")
    )


def _filled(limited: DataFrame) -> DataFrame:
    """Add how full a bucket is when an interval `begins` and at its end (`filled`), and its
    `length` in seconds."""
    order = Window.partitionBy(*_OWN).orderBy("start_ms", "dur_ms")
    before, so_far = (
        order.rowsBetween(Window.unboundedPreceding, -1),
        order.rowsBetween(Window.unboundedPreceding, 0),
    )
    ended = F.coalesce(F.max(F.col("start_ms") + F.col("dur_ms")).over(before), F.col("start_ms"))
    timed = limited.withColumn("ended_ms", ended)
    # Gateways that end cut intervals short; the others' go on beside those.
    free = F.greatest("start_ms", "ended_ms")
    length = F.greatest(F.col("start_ms") + F.col("dur_ms") - free, F.lit(0)) / 1000.0
    pause = F.greatest(F.col("start_ms") - F.col("ended_ms"), F.lit(0)) / 1000.0
    stepped = timed.withColumn("length", length).withColumn("pause", pause)
    came = F.col("amount") - F.col("limit") * F.col("length")
    steps = stepped.withColumn("net", came)
    total = F.sum(F.col("net") - F.col("limit") * F.col("pause")).over(so_far)
    summed = steps.withColumn("sum", total).withColumn("low", F.col("sum") - F.col("net"))
    least = F.least(F.min(F.least("low", "sum")).over(so_far), F.lit(0.0))
    earlier = F.least(F.coalesce(F.min(F.least("low", "sum")).over(before), F.lit(0.0)), F.lit(0.0))
    next_pause = F.lead("pause").over(order)
    return (
        summed.withColumn("begins", F.col("low") - F.least(earlier, F.col("low")))
        .withColumn("filled", F.col("sum") - least)
        .withColumn("next_pause", next_pause)
    )


def _held(filled: DataFrame) -> DataFrame:
    """Add what waits in each interval: `beyond` in units, and `seconds`."""
    burst, limit, length = F.col("burst"), F.col("limit"), F.col("length")
    first, last, net = F.col("begins"), F.col("filled"), F.col("net")
    over = (
        F.when((first > burst) & (last > burst), 1.0)
        .when((net > 0) & (last > burst), _part((last - burst) / net))
        .when((net < 0) & (first > burst), _part((first - burst) / -net))
        .otherwise(0.0)
    )
    # What still waits at the end goes in the pause behind it, if there is one.
    rest = F.greatest(last - burst, F.lit(0.0)) / limit
    rest = F.when(F.col("next_pause").isNull(), rest).otherwise(F.least(rest, "next_pause"))
    second = F.least(length, F.lit(1.0))
    peak = F.greatest(F.least(first, last) + F.col("peak") - limit * second - burst, F.lit(0.0))
    peak = F.when(over == 0.0, F.least(peak, F.col("amount").cast("double"))).otherwise(0.0)
    return (
        filled.withColumn("over", over)
        .withColumn("peaked", peak)
        .withColumn("beyond", F.col("over") * F.col("amount") + F.col("peaked"))
        .withColumn(
            "seconds",
            F.col("over") * length + rest + F.least(F.col("peaked") / limit, length),
        )
    )


def _part(value: Column) -> Column:
    return F.least(F.greatest(value, F.lit(0.0)), F.lit(1.0))


def _summed(rows: DataFrame) -> DataFrame:
    """Return one row per limit: its sums over all days, and the day on which it held longest."""
    days = rows.groupBy("bucket", "day").agg(
        F.count(F.lit(1)).alias("intervals"),
        F.count_if(F.col("beyond") > 0).alias("exceeded"),
        F.count_if("waited").alias("waited"),
        F.sum(F.col("amount").cast("double")).alias("amount"),
        F.sum("beyond").alias("beyond"),
        F.sum("seconds").alias("seconds"),
    )
    # Of two equally bad days the earlier one.
    worst = F.min_by("day", F.struct(-F.col("seconds"), "day"))
    names = ("intervals", "exceeded", "waited", "amount", "beyond", "seconds")
    sums = [F.sum(name).alias(name) for name in names]
    most = F.max("seconds").alias("worst_seconds")
    return days.groupBy("bucket").agg(*sums, most, worst.alias("worst_day"))
