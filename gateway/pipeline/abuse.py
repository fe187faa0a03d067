"""Abuse: attacks on credentials, and what only looks like one, in the events of gateways.

Failures of one network without a long pause between them are one *burst*. What a burst is depends
on whether its principals were ever connected from there before it began: who was is *at home*.

| Failures | Of strangers to the network | Of principals at home there |
|---|---|---|
| of many principals | `spraying` | nothing: each has a few |
| many of one principal | `guessing`; `guessed` if it is connected soon | `expired_storm` |
| many without a principal | `spraying`; `guessed` if somebody is connected soon | `expired_storm` |

A gateway that refuses a client by its first credential knows no principal, so the last line is what
most attacks look like. A storm is a mistake: clients go on with a credential that was good before.
`shared_credential` needs no failure: a principal is connected from many networks in one day, and
usually is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.kinds import MISTAKES, Kind
from gateway.pipeline.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from gateway.pipeline.lake import Lake

MINUTE_MS = 60_000

NOBODY = ""
"""Stands for the principal of failures that name none."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on something is abuse.

    `pause_ms`: ends a burst: clients that retry wait for a minute, or some, at most.
    `sprayed`: principals; a site has that many people who are all wrong within minutes never.
    `nameless`: failures without a principal, of a network nobody is at home in: what a new client
    that is set up wrongly makes before somebody looks is less.
    `guesses`: more than a person mistypes.
    `soon_ms`: from the last failure to the success that it led to.
    `stormy`: failures of those at home: fewer are no reason to call anybody.
    `networks`: in a day; nobody is in more places, with offices, homes and phones.
    `unlike`: factor of the usual number of networks, because mobile fleets always have many.
    `least_days`: of a usual number; of two days, one is odd.
    """

    pause_ms: int = 5 * MINUTE_MS
    sprayed: int = 10
    nameless: int = 30
    guesses: int = 20
    soon_ms: int = 10 * MINUTE_MS
    stormy: int = 100
    networks: int = 6
    unlike: float = 3.0
    least_days: int = 3


def update(
    lake: Lake, days: Iterable[str], now_ms: int, thresholds: Thresholds | None = None
) -> DataFrame:
    """Replace some days of the table `abuse` by what is found in their events, and return them.
    Only these days tell who was connected from where, so give four weeks or more."""
    state, days = lake.state(), sorted(days)
    found = findings(lake.read("events", days, state=state), thresholds or Thresholds())
    change = lake.change("abuse", now_ms, state)
    change.replace("abuse", found, days)
    change.commit()
    return lake.read("abuse", days)


def findings(events: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Return what was found in events, in the columns of the table `abuse`.

    `kind`: see `Kind`. `principal`, `network`: null where there are several, or none is known.
    `start_ms`, `end_ms`: of the first and just after the last event, in milliseconds since 1970.
    `failures`; `principals`, `networks`: how many different ones. `usual`: networks of the
    principal on a usual day; null of other kinds. `day`: of the start.
    """
    tries = _tries(events, thresholds)
    parts = (
        _sprayed(tries, thresholds),
        _guessed(tries, thresholds),
        _stormed(tries, thresholds),
        _shared(events, thresholds),
    )
    found = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    day = F.date_format(F.timestamp_millis("start_ms"), "yyyy-MM-dd")
    attack = ~F.col("kind").isin(*(str(it) for it in MISTAKES))
    rows = found.withColumn("day", day).withColumn("is_attack", attack)
    return rows.select(*TABLES["abuse"].fieldNames())


# -- bursts ------------------------------------------------------------------------------------


def _tries(events: DataFrame, it: Thresholds) -> DataFrame:
    """Return the failures of each principal in each burst: `network`, `burst`, `who`, `failures`,
    `start_ms`, `end_ms`, whether it `is_home`, and who was `in_first` from there, `since_ms`."""
    failures = events.where(
        (F.col("event") == "unauthenticated") & F.col("client_net").isNotNull()
    ).select(
        F.col("client_net").alias("network"),
        F.coalesce("principal", F.lit(NOBODY)).alias("who"),
        "time_ms",
    )
    bursts = _in_runs(failures, "burst", ["network"], "time_ms", "time_ms", it.pause_ms)
    tries = bursts.groupBy("network", "burst", "who").agg(
        F.count(F.lit(1)).alias("failures"),
        F.min("time_ms").alias("start_ms"),
        (F.max("time_ms") + 1).alias("end_ms"),
    )
    known = tries.join(homes(events), ["network", "who"], "left")
    home = F.coalesce(F.col("since_ms") < F.col("start_ms"), F.lit(False))
    return known.withColumn("is_home", home)


def homes(events: DataFrame) -> DataFrame:
    """Return a row for each `network` and principal (`who`) that was connected from it, with the
    first time (`since_ms`). The rows of `NOBODY` have the first principal of a network
    (`in_first`)."""
    there = events.where(
        F.col("event").isin("connected", "ended")
        & F.col("principal").isNotNull()
        & F.col("client_net").isNotNull()
    )
    lasted = F.when(F.col("event") == "ended", F.coalesce("open_ms", F.lit(0))).otherwise(0)
    since = there.select(
        F.col("client_net").alias("network"), "principal", (F.col("time_ms") - lasted).alias("ms")
    )
    who = F.explode(F.array("principal", F.lit(NOBODY)))
    return (
        since.withColumn("who", who)
        .groupBy("network", "who")
        .agg(F.min(F.struct("ms", "principal")).alias("first"))
        .select(
            *("network", "who"),
            F.col("first.ms").alias("since_ms"),
            F.col("first.principal").alias("in_first"),
        )
    )


def _in_runs(
    rows: DataFrame, name: str, keys: list[str], start: str, end: str, pause_ms: int
) -> DataFrame:
    """Add a number of the run that a row belongs to: a new one begins after a pause."""
    ordered = Window.partitionBy(*keys).orderBy(start, end)
    earlier = ordered.rowsBetween(Window.unboundedPreceding, -1)
    begins = F.col(start) - F.max(end).over(earlier) > pause_ms
    marked = rows.withColumn("begins", F.coalesce(begins, F.lit(False)).cast("bigint"))
    numbers = F.sum("begins").over(ordered.rowsBetween(Window.unboundedPreceding, 0))
    return marked.withColumn(name, numbers).drop("begins")


# -- kinds -------------------------------------------------------------------------------------


def _sprayed(tries: DataFrame, it: Thresholds) -> DataFrame:
    """Return the bursts in which one network tried many principals that it is strange to."""
    strangers = tries.where(~F.col("is_home") & (F.col("who") != NOBODY))
    found = strangers.groupBy("network", "burst").agg(
        F.sum("failures").alias("failures"),
        F.count(F.lit(1)).alias("principals"),
        F.min("start_ms").alias("start_ms"),
        F.max("end_ms").alias("end_ms"),
    )
    many = found.where(F.col("principals") >= it.sprayed).drop("burst")
    return many.withColumn("networks", _one()).withColumn("kind", F.lit(Kind.SPRAYING))


def _guessed(tries: DataFrame, it: Thresholds) -> DataFrame:
    """Return many failures of one principal, or of unknown ones, that are not at home."""
    nameless = F.col("who") == NOBODY
    many = F.col("failures") >= F.when(nameless, it.nameless).otherwise(it.guesses)
    found = tries.where(many & ~F.col("is_home"))
    is_in = F.col("since_ms").between(F.col("end_ms") - 1, F.col("end_ms") + it.soon_ms)
    is_in = F.coalesce(is_in, F.lit(False))
    kind = F.when(is_in, Kind.GUESSED).when(nameless, Kind.SPRAYING).otherwise(Kind.GUESSING)
    principal = F.when(is_in, F.col("in_first")).when(~nameless, F.col("who"))
    return found.select(
        kind.alias("kind"),
        principal.alias("principal"),
        *("network", "start_ms"),
        F.when(is_in, F.col("since_ms") + 1).otherwise(F.col("end_ms")).alias("end_ms"),
        "failures",
        F.when(~nameless | is_in, 1).cast("bigint").alias("principals"),
        _one().alias("networks"),
    )


def _stormed(tries: DataFrame, it: Thresholds) -> DataFrame:
    """Return many failures of a principal in its networks, or of unknown ones in a network that
    somebody is at home in. Those of all networks of a principal are one storm."""
    home = tries.where(F.col("is_home"))
    place = F.when(F.col("who") == NOBODY, F.col("network")).otherwise(NOBODY)
    keys = ["who", "place"]
    runs = _in_runs(
        home.withColumn("place", place), "storm", keys, "start_ms", "end_ms", it.pause_ms
    )
    found = runs.groupBy(*keys, "storm").agg(
        F.sum("failures").alias("failures"),
        F.count_distinct("network").alias("networks"),
        F.min("network").alias("network"),
        F.min("start_ms").alias("start_ms"),
        F.max("end_ms").alias("end_ms"),
    )
    named = F.col("who") != NOBODY
    return found.where(F.col("failures") >= it.stormy).select(
        F.lit(Kind.EXPIRED_STORM).alias("kind"),
        F.when(named, F.col("who")).alias("principal"),
        F.when(F.col("networks") == 1, F.col("network")).alias("network"),
        *("start_ms", "end_ms", "failures", "networks"),
        F.when(named, 1).cast("bigint").alias("principals"),
    )


def _shared(events: DataFrame, it: Thresholds) -> DataFrame:
    """Return days on which a principal is connected from many more networks than usual."""
    there = events.where((F.col("event") == "connected") & F.col("principal").isNotNull())
    days = there.groupBy("principal", "day").agg(
        F.count_distinct("client_net").alias("networks"),
        F.min("time_ms").alias("start_ms"),
        (F.max("time_ms") + 1).alias("end_ms"),
    )
    own = Window.partitionBy("principal")
    usual, number = F.median("networks").over(own), F.count(F.lit(1)).over(own)
    compared = days.withColumn("usual", usual).withColumn("days", number)
    is_odd = (F.col("networks") >= it.networks) & (
        F.col("networks") >= F.greatest("usual", F.lit(1.0)) * it.unlike
    )
    found = compared.where(is_odd & (F.col("days") >= it.least_days)).drop("day", "days")
    found = found.withColumn("failures", F.lit(0).cast("bigint"))
    return found.withColumn("principals", _one()).withColumn("kind", F.lit(Kind.SHARED_CREDENTIAL))


def _one() -> Column:
    return F.lit(1).cast("bigint")
