"""Neighbours: times at which one tenant's growth comes with others' latency or holds.

Tenants of a cluster share its brokers, whatever listener they come by. Time is cut into slots. In
each slot and cluster

1. a tenant *grows* if its rate is far above what it usually is at this time, and it has a notable
   share of the traffic. Usual is the median of the same slot of the week; where there are too few,
   of the same slot of the day; then of all slots. The slot of an hour counts, because jobs start at
   fixed minutes. Slots in which a tenant is silent do not count, so a job of each night is compared
   with its nights;
2. a tenant *suffers* if its sends take far longer than its median, or it is held far longer by
   rules that hold somebody else in the same slot. A rule that holds one tenant alone is that
   tenant's own limit, and says nothing about neighbours;
3. whoever grows while others suffer is a candidate. Adjacent slots of a candidate are one incident.
   Where several grow at once, a slot belongs to the one that grows in most slots of suffering:
   jobs that happen to run in the middle of an incident are short.

Growth alone, as that of a launch, is no incident; nor is suffering alone. How far is far is told by
the median of the absolute deviations from the median (MAD), which a few odd slots do not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.ingest import MOST
from gateway.pipeline.schema import TABLES
from gateway.telemetry.figures import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from gateway.pipeline.lake import Lake

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS

SIGMA = 1.4826
"""Standard deviations of a normal distribution in one MAD."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on something is odd. Intervals of records must not be longer than a slot.

    `slot_ms`: shorter ones have too few sends of small tenants, longer ones dilute an incident.
    `history`: slots that make a median: of four, one odd value does not move it far.
    `z`: standard deviations; with a million slots a month, six happen by chance to none.
    `least_spread`: of a median, as its standard deviation: nothing is steadier than a tenth.
    `growth`: factor of the usual rate; less than twice is an ordinary day.
    `share`: of the bytes or the messages of a cluster; who has less than this crowds nobody out.
    `quiet`: bytes a second that are as good as nothing.
    `slower`: factor of the median latency; twice is what people notice.
    `least_slower_s`: seconds by which it rises at least: fewer are below what brokers' disks vary.
    `least_sends`: of a mean latency; of fewer, one slow send makes half of the mean.
    `least_held`: part of a slot; holds of one percent of the time are felt.
    `least_slots`: of an incident; one slot is a coincidence.
    `bridged`: slots without a sign, within an incident: a small tenant may be silent for one.
    `victims`: names in a slot, those that suffer most, and in an incident.
    """

    slot_ms: int = 300_000
    history: int = 4
    z: float = 6.0
    least_spread: float = 0.1
    growth: float = 2.0
    share: float = 0.05
    quiet: float = 1_000.0
    slower: float = 2.0
    least_slower_s: float = 0.005
    least_sends: int = 10
    least_held: float = 0.01
    least_slots: int = 2
    bridged: int = 1
    victims: int = 50


def update(
    lake: Lake, days: Iterable[str], now_ms: int, thresholds: Thresholds | None = None
) -> DataFrame:
    """Replace some days of the table `neighbours` by the incidents found in them, and return them.
    What is usual is learnt from these days, so give four weeks or more."""
    state, days = lake.state(), sorted(days)
    found = incidents(lake.read("usage", days, state=state), thresholds or Thresholds())
    change = lake.change("neighbours", now_ms, state)
    change.replace("neighbours", found, days)
    change.commit()
    return lake.read("neighbours", days)


def incidents(usage: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Return the incidents in records of usage, in the columns of the table `neighbours`.

    `cluster`: or the listener, where records name none. `culprit`: the tenant that grew.
    `start_ms`, `end_ms`: milliseconds since 1970, the end exclusive. `slots`: in which it grew
    while others suffered. `victims`: tenants that suffered. `share`: of the traffic that the
    culprit had, on average. `z`: the most standard deviations above what was usual. `growth`:
    the mean factor of its usual rate. `slower`: the highest factor of a victim's latency; null
    where none is known. `held_ms`: of all victims. `day`: of the start.
    """
    return of_signals(signals(usage, thresholds), thresholds)


def of_signals(found: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Return the incidents in signals."""
    return _incidents(_candidates(found, thresholds), thresholds)


# -- what is usual -----------------------------------------------------------------------------


class Median(NamedTuple):
    """A median of each tenant. `value`: of which figure of a slot. `time`: the column with the
    time of which all slots are compared; "": all slots are."""

    name: str
    value: str
    time: str = ""


MEDIANS = (
    Median("all", "rate"),
    Median("day", "rate", "of_day"),
    Median("week", "rate", "of_week"),
    Median("wait", "wait"),
    Median("held", "held_ms"),
)
"""The coarsest first: rows of one tenant are together then, and only sorted anew."""

_WHAT = ("n", "mid", "mad")
_SLOT = ("cluster", "tenant", "slot_ms")
_KEYS = ["cluster", "tenant", "name", "time_ms"]


def usual(usage: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Return what is usual for each tenant: a row for each of `MEDIANS` (`name`) and time of the
    day or week (`time_ms`, else 0) with enough history: `n` slots, their median `mid`, `mad`."""
    slots = _with_usual(_timed(_slots(usage, thresholds), thresholds))
    each = (
        F.struct(
            *(_name_and_time(it)[part].alias(part) for part in ("name", "time_ms")),
            *(F.col(f"{it.name}_{what}").alias(what) for what in _WHAT),
        )
        for it in MEDIANS
    )
    rows = slots.select("cluster", "tenant", F.explode(F.array(*each)).alias("it"))
    known = rows.select("cluster", "tenant", "it.*").where(F.col("n") >= thresholds.history)
    return known.groupBy(*_KEYS).agg(*(F.first(what).alias(what) for what in _WHAT))


def _name_and_time(it: Median) -> Column:
    time = F.col(it.time) if it.time else F.lit(0).cast("bigint")
    return F.struct(F.lit(it.name).alias("name"), time.alias("time_ms"))


def _timed(slots: DataFrame, it: Thresholds) -> DataFrame:
    """Add the rate in bytes per second, and the times of day and week."""
    rate = F.when(F.col("bytes") > 0, F.col("bytes") * 1000.0 / it.slot_ms)
    return (
        slots.withColumn("rate", rate)
        .withColumn("of_day", F.col("slot_ms") % DAY_MS)
        .withColumn("of_week", F.col("slot_ms") % WEEK_MS)
    )


def _with_usual(slots: DataFrame) -> DataFrame:
    """Add number, median and MAD of the values of all slots with the same time, for each median."""
    for name, value, time in MEDIANS:
        same = Window.partitionBy("cluster", "tenant", *((time,) if time else ()))
        mid = F.median(value).over(same)
        slots = slots.withColumn(f"{name}_n", F.count(value).over(same))
        slots = slots.withColumn(f"{name}_mid", mid)
        off = F.abs(F.col(value) - F.col(f"{name}_mid"))
        slots = slots.withColumn(f"{name}_mad", F.median(off).over(same))
    return slots


def _with_known(slots: DataFrame, known: DataFrame) -> DataFrame:
    """Add the same from what was learnt, with nulls where that is nothing."""
    asked = slots.withColumn("it", F.explode(F.array(*(_name_and_time(it) for it in MEDIANS))))
    answers = known.select(*_KEYS, *_WHAT)
    answered = asked.select(*slots.columns, "it.*").join(answers, _KEYS, "left")
    rest = [name for name in slots.columns if name not in _SLOT]
    return answered.groupBy(*_SLOT).agg(
        *(F.first(name).alias(name) for name in rest),
        *(
            F.max(F.when(F.col("name") == it.name, F.col(what))).alias(f"{it.name}_{what}")
            for it in MEDIANS
            for what in _WHAT
        ),
    )


def _first_known(what: str, it: Thresholds) -> Column:
    """Return the median or MAD of the finest times with enough history; 0 where there are none:
    whoever is new has used nothing so far."""
    found = F.lit(0.0)
    for name in ("all", "day", "week"):
        enough = F.col(f"{name}_n") >= it.history
        found = F.when(enough, F.col(f"{name}_{what}")).otherwise(found)
    return found


def _sigma(name: str) -> Column:
    return F.col(f"{name}_mad") * SIGMA


# -- signals -----------------------------------------------------------------------------------


def signals(usage: DataFrame, thresholds: Thresholds, known: DataFrame | None = None) -> DataFrame:
    """Return a row for each cluster, tenant and slot: `share`, `z`, `growth`, `slower`, `held_ms`,
    and whether it `grows` and `suffers`. `known`: what `usual` has learnt from other records;
    without it, what is usual is learnt from these."""
    it = thresholds
    slots = _timed(_slots(usage, it), it)
    slots = _with_usual(slots) if known is None else _with_known(slots, known)
    slots = _with_growth(slots, it)
    late = F.col("wait") - F.col("wait_mid")
    wait_z = F.try_divide(late, F.greatest(_sigma("wait"), F.col("wait_mid") * it.least_spread))
    slower = F.when(F.col("wait_n") >= it.history, F.try_divide("wait", "wait_mid"))
    is_late = (slower >= it.slower) & (wait_z >= it.z) & (late >= it.least_slower_s)
    held_z = (F.col("held_ms") - F.col("held_mid")) / F.greatest(
        _sigma("held"), F.col("held_mid") * it.least_spread, F.lit(1.0)
    )
    is_held = (F.col("held_ms") >= it.least_held * it.slot_ms) & (held_z >= it.z)
    grows = (F.col("z") >= it.z) & (F.col("growth") >= it.growth) & (F.col("share") >= it.share)
    return slots.select(
        *("cluster", "tenant", "slot_ms", "share", "z", "growth"),
        slower.alias("slower"),
        "held_ms",
        F.coalesce(grows, F.lit(False)).alias("grows"),
        (F.coalesce(is_late, F.lit(False)) | F.coalesce(is_held, F.lit(False))).alias("suffers"),
    )


_WAITS = TABLES["usage"]["throttles"].dataType

FIGURES = ("sent_bytes", "bytes_wire", "sent_msgs", "msgs", "lat_count", "lat_sum_us")
"""Fields of records that are added up to a slot."""


def slot_sums(usage: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Return records of a whole slot each, which give the signals that these records give, in the
    columns of the table `watched_slots`. Holds are records of their own. They can be summed up
    again, with others."""
    keys = ("op", "cluster", "listener", "tenant", "lat_what", "start_ms")
    counts = F.col("op").isin("send", "deliver") | _of_sends()
    slot = F.col("start_ms") - F.col("start_ms") % thresholds.slot_ms
    each = usage.where(counts & _named()).withColumn("start_ms", slot)
    sums = each.groupBy(*keys).agg(*(_bounded(name).alias(name) for name in FIGURES))
    holds = each.select(*keys, F.explode("throttles").alias("hold"))
    holds = holds.where(F.col("hold.ms").between(0, MOST))
    held = holds.groupBy(*keys, F.col("hold.rule").alias("rule")).agg(
        _bounded("hold.ms").alias("ms")
    )
    nothing = F.lit(0).cast("bigint")
    wait = F.struct("rule", nothing.alias("count"), "ms")
    waits = held.select(
        *keys, *(nothing.alias(name) for name in FIGURES), F.array(wait).alias("throttles")
    )
    return waits.unionByName(sums.withColumn("throttles", F.array().cast(_WAITS)))


def _bounded(name: str) -> Column:
    """Return a sum that can be added to others: odd numbers must not fail all runs to come."""
    return F.least(F.coalesce(F.try_sum(name), F.lit(MOST)), F.lit(MOST))


def _named() -> Column:
    return F.col("tenant").isNotNull() & (F.col("tenant") != OTHER)


def _of_sends() -> Column:
    return (F.col("op") == "latency") & (F.col("lat_what") == "send")


def _slots(usage: DataFrame, it: Thresholds) -> DataFrame:
    """Return `bytes`, `msgs`, `wait` (seconds of a mean send) and `held_ms` by cluster, tenant and
    slot. What a slot has nothing of is null, but holds are 0."""
    op, keys = F.col("op"), ("cluster", "tenant", "slot_ms")
    placed = _placed(usage, it).where(_named() & op.isin("send", "deliver", "latency"))
    of_sends = _of_sends()
    sums = placed.groupBy(*keys).agg(
        F.sum(_of_traffic("sent_bytes", "bytes_wire")).alias("bytes"),
        F.sum(_of_traffic("sent_msgs", "msgs")).alias("msgs"),
        F.sum(F.when(of_sends, F.col("lat_count"))).alias("sends"),
        F.sum(F.when(of_sends, F.col("lat_sum_us"))).alias("wait_us"),
    )
    seconds = F.try_divide("wait_us", "sends") / 1e6
    slots = sums.withColumn("wait", F.when(F.col("sends") >= it.least_sends, seconds))
    return slots.join(_shared_holds(placed), list(keys), "left").na.fill(0, ["held_ms"])


def _placed(usage: DataFrame, it: Thresholds) -> DataFrame:
    """Return records with their slot, and the cluster of their listener: latencies name none."""
    pairs = usage.where(F.col("cluster").isNotNull() & F.col("listener").isNotNull())
    clusters = pairs.groupBy("listener").agg(F.max("cluster").alias("its_cluster"))
    placed = usage.join(F.broadcast(clusters), "listener", "left")
    cluster = F.coalesce("cluster", "its_cluster", "listener", F.lit(""))
    slot = F.col("start_ms") - F.col("start_ms") % it.slot_ms
    return placed.withColumn("cluster", cluster).withColumn("slot_ms", slot)


def _of_traffic(sent: str, delivered: str) -> Column:
    op = F.col("op")
    return F.when(op == "send", F.col(sent)).when(op == "deliver", F.col(delivered))


def _shared_holds(placed: DataFrame) -> DataFrame:
    """Return `held_ms` by cluster, tenant and slot: of rules that held several tenants in it."""
    waits = placed.where(F.size("throttles") > 0).select(
        "cluster", "tenant", "slot_ms", F.explode("throttles").alias("hold")
    )
    # A table may have any number there, and a sum that overflows would fail the job.
    waits = waits.where(F.col("hold.ms").between(0, MOST))
    each = waits.groupBy("cluster", "slot_ms", F.col("hold.rule").alias("rule"), "tenant").agg(
        F.sum("hold.ms").alias("ms")
    )
    held = F.count(F.lit(1)).over(Window.partitionBy("cluster", "slot_ms", "rule"))
    shared = each.withColumn("tenants", held).where(F.col("tenants") > 1)
    return shared.groupBy("cluster", "tenant", "slot_ms").agg(F.sum("ms").alias("held_ms"))


def _with_growth(slots: DataFrame, it: Thresholds) -> DataFrame:
    """Add `share`, and `z` and `growth` of the rate."""
    all_of_slot = Window.partitionBy("cluster", "slot_ms")
    shares = (F.try_divide(name, F.sum(name).over(all_of_slot)) for name in ("bytes", "msgs"))
    slots = slots.withColumn("share", F.greatest(*shares))
    usual, sigma = _first_known("mid", it), _first_known("mad", it) * SIGMA
    slots = slots.withColumn("usual", F.greatest(usual, F.lit(it.quiet)))
    spread = F.greatest(sigma, F.col("usual") * it.least_spread)
    return slots.withColumn("z", (F.col("rate") - F.col("usual")) / spread).withColumn(
        "growth", F.col("rate") / F.col("usual")
    )


# -- incidents ---------------------------------------------------------------------------------


def _candidates(slots: DataFrame, it: Thresholds) -> DataFrame:
    """Return a row for each slot, and tenant that grows in it while others suffer."""
    odd = slots.where(F.col("grows") | F.col("suffers"))
    one = F.struct("tenant", "share", "z", "growth", "slower", "held_ms", "grows", "suffers")
    each = odd.groupBy("cluster", "slot_ms").agg(F.collect_list(one).alias("everybody"))
    grown = F.explode(F.filter("everybody", lambda one: one["grows"]))
    others = F.filter(
        "everybody", lambda one: one["suffers"] & (one["tenant"] != F.col("culprit.tenant"))
    )
    pairs = each.withColumn("culprit", grown).withColumn("others", others)
    names = F.transform(
        F.sort_array(F.transform("others", _worst_first)), lambda one: one["tenant"]
    )
    held = F.aggregate("others", F.lit(0).cast("bigint"), lambda ms, one: ms + one["held_ms"])
    return pairs.where(F.size("others") > 0).select(
        *("cluster", "slot_ms", F.col("culprit.tenant").alias("culprit")),
        *(F.col(f"culprit.{name}").alias(name) for name in ("share", "z", "growth")),
        F.slice(names, 1, it.victims).alias("victims"),
        F.array_max(F.transform("others", lambda one: one["slower"])).alias("slower"),
        held.alias("held_ms"),
    )


def _worst_first(victim: Column) -> Column:
    """Return what sorts victims."""
    slower = F.coalesce(victim["slower"], F.lit(0.0))
    return F.struct(
        (-slower).alias("a"), (-victim["held_ms"]).alias("b"), victim["tenant"].alias("tenant")
    )


def _incidents(candidates: DataFrame, it: Thresholds) -> DataFrame:
    """Return adjacent slots as one, each slot with one culprit."""
    own = Window.partitionBy("cluster", "culprit").orderBy("slot_ms")
    before = F.lag("slot_ms").over(own)
    begins = F.coalesce(F.col("slot_ms") - before > it.slot_ms * (1 + it.bridged), F.lit(True))
    marked = candidates.withColumn("begins", begins.cast("bigint"))
    numbered = marked.withColumn("number", F.sum("begins").over(own))
    whole = Window.partitionBy("cluster", "culprit", "number")
    sized = numbered.withColumn("size", F.count(F.lit(1)).over(whole))
    rivals = Window.partitionBy("cluster", "slot_ms").orderBy(
        F.desc("size"), F.desc("z"), "culprit"
    )
    chosen = sized.withColumn("rank", F.row_number().over(rivals)).where(F.col("rank") == 1)
    each = F.sort_array(F.collect_list(F.struct("slot_ms", "victims", "share", "growth")))
    by_time = F.transform(each, lambda slot: slot["victims"])
    found = chosen.groupBy("cluster", "culprit", "number", "size").agg(
        F.min("slot_ms").alias("start_ms"),
        (F.max("slot_ms") + it.slot_ms).alias("end_ms"),
        F.count(F.lit(1)).alias("slots"),
        F.slice(F.array_distinct(F.flatten(by_time)), 1, it.victims).alias("victims"),
        *(_mean(each, name).alias(name) for name in ("share", "growth")),
        *(F.max(name).alias(name) for name in ("z", "slower")),
        F.sum("held_ms").alias("held_ms"),
    )
    # Whoever lost most of its slots to another was there by chance.
    kept = found.where((F.col("slots") >= it.least_slots) & (F.col("slots") * 2 > F.col("size")))
    day = F.date_format(F.timestamp_millis("start_ms"), "yyyy-MM-dd")
    return kept.withColumn("day", day).select(*TABLES["neighbours"].fieldNames())


def _mean(slots: Column, name: str) -> Column:
    """Return the mean of a field of an array. Its order is that of the sum: Spark's own average
    adds up in the order in which its workers are done, of which the last digits differ."""
    whole = F.aggregate(slots, F.lit(0.0), lambda before, slot: before + slot[name])
    return whole / F.size(slots)
