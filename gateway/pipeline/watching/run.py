"""A run: takes new files by Spark's streaming, and gives the alerts that its batches found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline import keeping, neighbours
from gateway.pipeline.given import given
from gateway.pipeline.ingest import NAMES, READING, folder_of, listing
from gateway.pipeline.schema import struct
from gateway.pipeline.watching.batch import STREAM, Step
from gateway.pipeline.watching.state import beside, folder, last, recent, since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Row

    from gateway.pipeline.lake import Lake
    from gateway.pipeline.neighbours import Thresholds
    from gateway.pipeline.watching.state import Run

LATE_MS = 600_000
"""How far the watermark is behind the newest record. Gateways close a file after a minute; a topic,
or a copy of files, may take some more."""

LEARNT_MS = 86_400_000
"""For which what is usual stays: the records of weeks take minutes to read."""

FILES_AT_ONCE = 1_000
"""Files of a batch: those of 16 gateways in an hour, after a pause."""

SWEPT = 50
"""Batches after which files that were replaced are removed: each run reads all commits."""

KEPT_MS = 3_600_000
"""For which these files stay. Nobody reads alerts for longer."""


def watch(
    tables: Lake,
    source: str,
    now_ms: int,
    thresholds: Thresholds,
    days: Sequence[str],
    give: Callable[[Iterable[Row]], None],
    *,
    late_ms: int = LATE_MS,
    files_at_once: int = FILES_AT_ONCE,
) -> Run:
    """Take all new files of usage, and return the sums of what their batches gave.

    `source`: the folder in which gateways have one for each stream. `now_ms`: milliseconds since
    1970. `days`: of the table of records, from which is learnt what is usual. `give`: gets alerts,
    oldest first, in the columns of the table `alerts` and with `is_new`.

    Raises `ConfigurationError` if there is no such folder.
    """
    own, place = folder(tables), folder_of(source, STREAM)
    listing(tables.spark, place)
    _learn(tables, beside(own), thresholds, days, now_ms)
    before = last(own, own.state())
    step = Step(own.base, now_ms, thresholds, late_ms, _is_new(own))
    _stream(own, place, step, files_at_once)
    _give(own, now_ms, give)
    found = since(own, before)
    if found.run // SWEPT > before.run // SWEPT:
        for lake in (own, beside(own)):
            if lake.state().head is not None:
                keeping.compact(lake, now_ms, kept_ms=KEPT_MS)
    return found


def _stream(own: Lake, place: str, step: Step, files_at_once: int) -> None:
    """Have each batch of new files taken. What the last run left comes first, as it was."""
    reader = own.spark.readStream.options(**READING, pathGlobFilter=NAMES)
    # Gateways remove the oldest files where they need the space.
    reader = reader.options(recursiveFileLookup=True, ignoreMissingFiles=True)
    lines = reader.option("maxFilesPerTrigger", files_at_once).text(place)
    writer = lines.writeStream.option("checkpointLocation", _checkpoint(own))
    writer.foreachBatch(step).trigger(availableNow=True).start().awaitTermination()


def _checkpoint(own: Lake) -> str:
    return f"{own.base}/checkpoint"


def _is_new(own: Lake) -> bool:
    """Return whether Spark begins anew, and numbers batches from 0 on."""
    try:
        own.spark.read.text(f"{_checkpoint(own)}/metadata").collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return True
        raise
    return False


def _learn(
    tables: Lake, kept: Lake, thresholds: Thresholds, days: Sequence[str], now_ms: int
) -> None:
    """See that what is usual is known, and no older than `LEARNT_MS`."""
    state = kept.state()
    known = kept.read("watched_usual", state=state)
    fitting = known.where(F.col("slot_ms") == thresholds.slot_ms)
    (row,) = fitting.agg(F.max("learnt_ms").alias("ms")).collect()
    if not days or (row.ms is not None and now_ms - row.ms < LEARNT_MS):
        return
    found = neighbours.usual(tables.read(STREAM, days), thresholds)
    marked = found.withColumns(
        {
            "learnt_ms": F.lit(now_ms).cast("bigint"),
            "slot_ms": F.lit(thresholds.slot_ms).cast("bigint"),
        }
    )
    change = kept.change("learn", now_ms, state)
    change.rewrite("watched_usual", marked)
    change.commit()


def _give(own: Lake, now_ms: int, give: Callable[[Iterable[Row]], None]) -> None:
    """Give the alerts that were not given, also those of a run that was killed; then mark them."""
    kept = beside(own)
    state = kept.state()
    (told,) = kept.read("watched_told", state=state).agg(F.max("run").alias("run")).collect()
    waiting = recent(own, own.state(), "alerts").where(F.col("last_run") > (told.run or 0))
    (row,) = waiting.agg(F.max("last_run").alias("run")).collect()
    if row.run is None:
        return
    marked = waiting.withColumn("is_new", F.col("first_run") > (told.run or 0))
    give(marked.orderBy("start_ms", "cluster", "culprit").toLocalIterator())
    change = kept.change("tell", now_ms, state)
    change.rewrite("watched_told", given(own.spark, [{"run": row.run}], struct("run bigint")))
    change.commit()
