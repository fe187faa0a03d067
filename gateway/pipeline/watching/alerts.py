"""Which incidents are news: those that no alert overlaps, and those that grew since theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.schema import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHO = ("cluster", "culprit")

_OF_ALERTS = {
    "start_ms": "told_start_ms",
    "end_ms": "told_end_ms",
    "slots": "told_slots",
    "victims": "told_victims",
    "told_ms": "first_ms",
    "first_run": "told_run",
    "day": "told_day",
}
"""Columns of alerts, and their names beside those of incidents."""


def news(incidents: DataFrame, alerts: DataFrame, now_ms: int, run: int, victims: int) -> DataFrame:
    """Return incidents that are new or grew, as rows of the table `alerts`, with the alerts that
    each replaces (`before`: `day`, `start_ms`). `victims`: names at most.

    The alert of an incident is the one of the same culprit that overlaps it; it keeps its start.
    `told_ms`, `first_run`: when it was told first. `last_run`: when it was told in this form.
    """
    told = alerts.select(*_WHO, *(F.col(old).alias(new) for old, new in _OF_ALERTS.items()))
    overlap = (F.col("start_ms") < F.col("told_end_ms")) & (
        F.col("told_start_ms") < F.col("end_ms")
    )
    same = [incidents[name] == told[name] for name in _WHO]
    pairs = incidents.join(told, [*same, overlap], "left").select(
        *(incidents[name] for name in incidents.columns), *_OF_ALERTS.values()
    )
    before = F.collect_list(
        F.when(
            F.col("told_day").isNotNull(),
            F.struct(F.col("told_day").alias("day"), F.col("told_start_ms").alias("start_ms")),
        )
    )
    rest = [it for it in incidents.columns if it not in (*_WHO, "start_ms")]
    each = pairs.groupBy(*_WHO, "start_ms").agg(
        *(F.first(name).alias(name) for name in rest),
        *(F.min(name).alias(name) for name in ("told_start_ms", "first_ms", "told_run")),
        *(F.max(name).alias(name) for name in ("told_end_ms", "told_slots")),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("told_victims")))).alias(
            "told_victims"
        ),
        before.alias("before"),
    )
    whole = F.slice(F.array_union("victims", "told_victims"), 1, victims)
    longer = F.coalesce(F.col("end_ms") > F.col("told_end_ms"), F.lit(True))
    grown = each.where(longer | (F.size(whole) > F.size("told_victims")))
    start = F.coalesce(F.least("told_start_ms", "start_ms"), "start_ms")
    merged = grown.withColumn("victims", whole).withColumns(
        {
            "start_ms": start,
            "day": F.date_format(F.timestamp_millis(start), "yyyy-MM-dd"),
            "end_ms": F.greatest("end_ms", "told_end_ms"),
            "slots": F.greatest("slots", "told_slots"),
            "told_ms": F.coalesce("first_ms", F.lit(now_ms)),
            "first_run": F.coalesce("told_run", F.lit(run)),
            "last_run": F.lit(run).cast("bigint"),
        }
    )
    # An alert may overlap two incidents, where a rival has taken the slots between them.
    one = Window.partitionBy(*_WHO, "start_ms").orderBy(F.desc("end_ms"))
    ranked = merged.withColumn("rank", F.row_number().over(one)).where(F.col("rank") == 1)
    return ranked.select(*TABLES["alerts"].fieldNames(), "before")
