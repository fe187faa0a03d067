"""A batch: new lines become sums of slots, signs and alerts, in one commit."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.storagelevel import StorageLevel

from gateway.pipeline import neighbours
from gateway.pipeline.ingest import as_records, filled
from gateway.pipeline.lake import Lake
from gateway.pipeline.neighbours import Thresholds
from gateway.pipeline.schema import RECORDS, TABLES
from gateway.pipeline.watching.alerts import news
from gateway.pipeline.watching.state import Run, beside, last, note, recent

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from gateway.pipeline.lake import Change, State

    Keep = Callable[[DataFrame], DataFrame]

STREAM = "usage"

LOOKS_BACK_MS = 86_400_000
"""Of the first run: an alert on what was longer ago helps nobody."""

SIGNS_MS = 86_400_000
"""For which signs of closed slots are kept. A longer incident stays one alert, because it overlaps
it, but its figures are of this time alone."""


_SIGNS = ("grows", "suffers")


@dataclass(frozen=True, slots=True)
class Step:
    """What is done with each batch of lines. `base`: folder of the tables of alerts. `is_new`:
    Spark numbers batches from 0 on. It holds no session, so that a Spark Connect server can run
    it."""

    base: str
    now_ms: int
    thresholds: Thresholds
    late_ms: int
    is_new: bool

    def __call__(self, lines: DataFrame, number: int) -> None:
        """Judge a batch, and commit what was found, unless that was done before."""
        own = Lake(lines.sparkSession, self.base)
        state = own.state()
        before = last(own, state)
        if number == before.batch and not (self.is_new and number == 0):
            return
        with ExitStack() as held:

            def keep(rows: DataFrame) -> DataFrame:
                held.callback(rows.unpersist)
                return rows.persist(StorageLevel.MEMORY_AND_DISK)

            change = own.change("watch", self.now_ms, state)
            batch = _Batch(self, own, state, before, change, keep)
            batch.take(lines, number)
            change.commit()


@dataclass(frozen=True, slots=True)
class _Batch:
    """One batch, and what the one before has left. `keep`: has rows computed once."""

    step: Step
    own: Lake
    state: State
    before: Run
    change: Change
    keep: Keep

    def take(self, lines: DataFrame, number: int) -> None:
        late_ms, now_ms = self.step.late_ms, self.step.now_ms
        newest_ms = self.before.newest_ms or now_ms - LOOKS_BACK_MS + late_ms
        rows = self.keep(_rows(lines, now_ms, newest_ms - late_ms))
        seen = self._left("watched_numbers")
        fresh = self.keep(_fresh(rows, seen))
        (counts,) = rows.groupBy().agg(*_counts()).collect()
        (reach,) = fresh.agg(F.count(F.lit(1)).alias("records"), _end().alias("ms")).collect()
        newest_ms = max(newest_ms, min(reach.ms or 0, now_ms))
        watermark_ms = newest_ms - late_ms
        told = self._judge(fresh, newest_ms, watermark_ms)
        numbers = seen.unionByName(ranges(fresh)).where(F.col("last_ms") >= watermark_ms)
        self.change.rewrite("watched_numbers", numbers)
        run = Run(
            run=self.before.run + 1,
            batch=number,
            at_ms=now_ms,
            records=reach.records,
            late=counts.late,
            repeated=counts.timely - reach.records,
            bad=counts.bad,
            alerts=told,
            newest_ms=newest_ms,
            slot_ms=self.step.thresholds.slot_ms,
        )
        note(self.own, self.state, self.change, run)

    def _left(self, table: str) -> DataFrame:
        return self.own.read(table, state=self.state)

    def _judge(self, fresh: DataFrame, newest_ms: int, watermark_ms: int) -> int:
        """Judge all slots that have ended and are open; return the number of alerts."""
        it = self.step.thresholds
        # Sums and signs of slots of another length say nothing of these.
        fits = F.lit(self.before.slot_ms == it.slot_ms)
        before = self._left("watched_slots").where(fits)
        sums = before.unionByName(fresh.select(*before.columns))
        slots, end = self.keep(neighbours.slot_sums(sums, it)), F.col("start_ms") + it.slot_ms
        known = beside(self.own).read("watched_usual").where(F.col("slot_ms") == it.slot_ms)
        judged = neighbours.signals(slots.where(end <= newest_ms), it, known)
        odd = judged.where(F.col("grows") | F.col("suffers"))
        signs = self.keep(self._left("watched_signs").where(fits).unionByName(odd))
        # Most batches have nobody who grows: planning what comes then takes longer than all else.
        (seen,) = signs.groupBy().agg(*(F.max(it).alias(it) for it in _SIGNS)).collect()
        is_one = seen.grows and seen.suffers
        told = self._tell(neighbours.of_signals(signs, it)) if is_one else 0
        self.change.rewrite("watched_slots", slots.where(end > watermark_ms))
        closed = F.col("slot_ms").between(newest_ms - SIGNS_MS, watermark_ms - it.slot_ms)
        self.change.rewrite("watched_signs", signs.where(closed))
        return told

    def _tell(self, found: DataFrame) -> int:
        """Put what is new of incidents into the table of alerts; return their number."""
        now_ms, run, victims = self.step.now_ms, self.before.run + 1, self.step.thresholds.victims
        told = recent(self.own, self.state, "alerts")
        new = self.keep(news(found, told, now_ms, run, victims))
        replaced = new.select("cluster", "culprit", F.explode("before").alias("alert"))
        replaced = replaced.select("cluster", "culprit", "alert.*")
        days = new.select("day").unionByName(replaced.select("day")).distinct().collect()
        if not days:
            return 0
        named = sorted(str(row.day) for row in days)
        kept = self.own.read("alerts", named, state=self.state)
        kept = kept.join(replaced.drop("day"), ["cluster", "culprit", "start_ms"], "left_anti")
        rows = kept.unionByName(new.drop("before"))
        self.change.replace("alerts", rows, named)
        return new.count()


def _rows(lines: DataFrame, now_ms: int, watermark_ms: int) -> DataFrame:
    """Return the records in lines, as far as they matter, with whether each `is_good` and
    `is_timely`."""
    marks = F.col("reason").isNull(), F.col("start_ms") >= watermark_ms
    read = as_records(lines, STREAM, now_ms).select("reason", *filled(STREAM))
    slots = TABLES["watched_slots"].fieldNames()
    return read.select(
        *(mark.alias(name) for mark, name in zip(marks, ("is_good", "is_timely"), strict=True)),
        *RECORDS[STREAM].identity,
        "dur_ms",
        *slots,
    )


def _counts() -> list[Column]:
    good, timely = F.col("is_good"), F.col("is_timely")
    counts = {"bad": ~good, "late": good & ~timely, "timely": good & timely}
    return [F.count_if(it).alias(name) for name, it in counts.items()]


def _end() -> Column:
    """Return the end of the newest record."""
    return F.max(F.col("start_ms") + F.coalesce("dur_ms", F.lit(0)))


def _fresh(rows: DataFrame, seen: DataFrame) -> DataFrame:
    """Return the records that are judged, each once."""
    good = rows.where(F.col("is_good") & F.col("is_timely"))
    once = good.dropDuplicates(list(RECORDS[STREAM].identity))
    same = [once[name] == seen[name] for name in ("gw", "boot")]
    between = once["seq"].between(seen["first_seq"], seen["last_seq"])
    return once.join(seen, [*same, between], "left_anti")


def ranges(records: DataFrame) -> DataFrame:
    """Return the numbers of records as ranges without gaps, each with the time of its newest one:
    once that is behind the watermark, whatever of it comes again is late anyway."""
    own = Window.partitionBy("gw", "boot").orderBy("seq")
    numbered = records.withColumn("gap", F.col("seq") - F.row_number().over(own))
    return (
        numbered.groupBy("gw", "boot", "gap")
        .agg(
            F.min("seq").alias("first_seq"),
            F.max("seq").alias("last_seq"),
            F.max("start_ms").alias("last_ms"),
        )
        .drop("gap")
    )
