"""Storage: what a cluster stores over time, from its snapshots.

What a snapshot shows is taken to be so until the next one of the same cluster, `LONGEST` at most:
so byte-hours are exact to the time between two snapshots, and a time without any counts as if
nothing was stored. What stands at midnight is divided between both days.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.lake import Lake, State
    from gateway.pipeline.ledgers.snapshot import Source

HOUR_MS, DAY_MS = 3_600_000, 86_400_000

LONGEST = DAY_MS
"""For which a snapshot stands: snapshots once a day are the least that bills need."""

OF_AGES: Source = "zookeeper"
"""The source that knows when ledgers were closed."""

OF_POSITIONS: Source = "admin"
"""The source that knows where open cursors are."""

_WHO = ("cluster", "topic", "subscription")

_ABANDONED = (
    *("cluster", "tenant", "topic", "subscription"),
    *("backlog_entries", "oldest_unread_ms", "holds_bytes"),
)


def store(lake: Lake, now_ms: int) -> list[str]:
    """Sum up the days that new snapshots change; return these days."""
    state = lake.state()
    days = stale(state)
    if days:
        change = lake.change("store", now_ms, state)
        read = lake.read("stored", around(days), state=state)
        change.replace("stored_daily", by_day(read).where(F.col("day").isin(days)), days)
        change.commit()
    return days


def stale(state: State) -> list[str]:
    """Return the days that snapshots change which are newer than all sums: a sum has seen all that
    was committed before it. A snapshot ends what the one before it shows, and begins what is shown
    until the next, so the days beside its own change too."""
    stored, sums = state.days.get("stored", {}), state.days.get("stored_daily", {})
    seen = max(sums.values(), default=[])
    return around(day for day, generations in stored.items() if generations > seen)


def around(days: Iterable[str]) -> list[str]:
    """Return days, and those beside them."""
    dates = {date.fromisoformat(day) for day in days}
    near = {it + timedelta(days=by) for it in dates for by in (-1, 0, 1)}
    return sorted(it.isoformat() for it in near)


def by_day(stored: DataFrame) -> DataFrame:
    """Return byte-hours, and the most and the last bytes, by cluster, topic and day. Partitions are
    added up."""
    topics = stored.groupBy("cluster", "snap_ms", "tenant", "namespace", "topic").agg(
        F.sum("stored_bytes").alias("bytes")
    )
    times = stored.select("cluster", "snap_ms").distinct()
    ahead = F.lead("snap_ms").over(Window.partitionBy("cluster").orderBy("snap_ms"))
    end = F.least(F.coalesce(ahead, F.col("snap_ms")), F.col("snap_ms") + LONGEST)
    shown = topics.join(times.withColumn("end_ms", end), ["cluster", "snap_ms"])
    midnight = F.col("snap_ms") - F.col("snap_ms") % DAY_MS + DAY_MS
    before = shown.select(
        "*", F.col("snap_ms").alias("at"), F.least("end_ms", midnight).alias("to")
    )
    after = shown.where(F.col("end_ms") > midnight)
    after = after.select("*", midnight.alias("at"), F.col("end_ms").alias("to"))
    parts = before.unionByName(after)
    # The product passes 64 bits.
    product = F.col("bytes").cast("decimal(18,0)") * (F.col("to") - F.col("at")).cast(
        "decimal(9,0)"
    )
    by = ("cluster", "tenant", "namespace", "topic", "day")
    day = F.date_format(F.timestamp_millis("at"), "yyyy-MM-dd")
    return (
        parts.withColumn("day", day)
        .groupBy(*by)
        .agg(
            F.floor(F.sum(product) / HOUR_MS).cast("bigint").alias("byte_hours"),
            F.max("bytes").alias("bytes_most"),
            F.max_by("bytes", "at").alias("bytes_last"),
        )
    )


def byte_hours(lake: Lake, month: Month, state: State | None = None) -> dict[str, int]:
    """Return the byte-hours of a month by tenant. `state`: an earlier view of the tables."""
    days = [it.isoformat() for it in month.days()]
    named = lake.read("stored_daily", days, state=state).where(F.col("tenant").isNotNull())
    sums = named.groupBy("tenant").agg(F.sum("byte_hours").alias("byte_hours"))
    return {row.tenant: row.byte_hours for row in sums.toLocalIterator()}


def abandoned(lake: Lake, older_ms: int) -> DataFrame:
    """Return abandoned subscriptions, and the bytes that deleting each would free.

    Abandoned is one whose oldest unread message is at least `older_ms` old. Columns: `cluster`,
    `tenant`, `topic` (or partition), `subscription`, `backlog_entries`, `oldest_unread_ms`,
    `holds_bytes`.

    Only ZooKeeper knows when ledgers were closed, and only brokers know where open cursors are: so
    a position that lags in the last snapshot of ZooKeeper is taken from the last one of brokers, of
    the same days, and stays unlisted without one. Subscriptions of readers end with them.
    """
    stored = _lately(lake)
    seen, of_brokers = (_cursors(_last(stored, it)) for it in (OF_AGES, OF_POSITIONS))
    lags = F.coalesce("lagging", F.lit(False))
    exact = seen.where(~lags).drop("ledgers", "lagging")
    located = _located(seen.where(lags), of_brokers).select(exact.columns)
    old = exact.unionByName(located).where(F.col("oldest_unread_ms") >= older_ms)
    found = old.where(~F.coalesce("transient", F.lit(False))).select(*_ABANDONED)
    return found.orderBy(F.desc("holds_bytes"), "cluster", "topic", "subscription")


def unlocated(lake: Lake) -> int:
    """Return how many subscriptions lag in ZooKeeper and are in no snapshot of brokers."""
    stored = _lately(lake)
    seen, of_brokers = (_cursors(_last(stored, it)) for it in (OF_AGES, OF_POSITIONS))
    return seen.where("lagging").join(of_brokers, [*_WHO], "left_anti").count()


def _located(lagging: DataFrame, of_brokers: DataFrame) -> DataFrame:
    """Return subscriptions that lag by the positions that brokers have, in the columns of
    `_cursors`. The age of what is unread is that of its ledger, at the time of the brokers."""
    wanted = lagging.select(*_WHO, F.col("ledgers").alias("dated"))
    both = of_brokers.join(wanted, [*_WHO])
    of_oldest = F.filter("dated", lambda it: it["id"] == F.col("oldest_ledger"))
    closed_ms = F.get(of_oldest, 0)["closed_ms"]
    # Null where nothing is unread, or only in the open ledger: `greatest` would pass over it.
    age = F.when(closed_ms.isNotNull(), F.greatest(F.col("snap_ms") - closed_ms, F.lit(0)))
    return both.withColumn("oldest_unread_ms", age)


def _cursors(stored: DataFrame) -> DataFrame:
    """Return a row for each subscription of topics, with the ledgers of its topic."""
    name = F.coalesce("partition", "topic").alias("topic")
    each = stored.select(
        "cluster", "snap_ms", "tenant", name, "ledgers", F.explode("cursors").alias("cursor")
    )
    return each.select(*each.columns[:-1], "cursor.*")


def _last(stored: DataFrame, source: Source) -> DataFrame:
    """Return the last snapshot of each cluster that came from a source."""
    found = stored.where(F.col("source") == source)
    last = found.groupBy("cluster").agg(F.max("snap_ms").alias("snap_ms"))
    return found.join(last, ["cluster", "snap_ms"])


def without_ages(lake: Lake) -> list[str]:
    """Return the clusters whose last snapshots are all of brokers."""
    knows = F.max(F.col("source") == OF_AGES)
    each = _lately(lake).groupBy("cluster").agg(knows.alias("knows"))
    return sorted(row.cluster for row in each.where(~F.col("knows")).toLocalIterator())


def _lately(lake: Lake) -> DataFrame:
    """Return the snapshots of the last two days that have some."""
    state = lake.state()
    return lake.read("stored", sorted(state.days.get("stored", {}))[-2:], state=state)
