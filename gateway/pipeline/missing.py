"""How many records are missing: gaps in the numbers of each gateway's process.

A gap counts for the day of the record behind it. A process numbers its records in the order of
their time; where a clock was set back by days, more may count as missing than is. What a process
wrote last and was lost is seen by nobody, and neither is a process of which nothing came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def gaps(completeness: DataFrame) -> DataFrame:
    """Return `stream`, `day`, `records` and `missing`. `completeness`: the table, of all days."""
    process = Window.partitionBy("stream", "gw", "boot").orderBy("first_seq", "day")
    before = process.rowsBetween(Window.unboundedPreceding, -1)
    # Days of one process overlap where clocks were set back, so the farthest number counts.
    reached = F.coalesce(F.max("last_seq").over(before), F.lit(0))
    between = F.greatest(F.lit(0), F.col("first_seq") - reached - 1)
    inside = F.col("last_seq") - F.col("first_seq") + 1 - F.col("records")
    each = completeness.withColumn("missing", between + F.greatest(F.lit(0), inside))
    return each.groupBy("stream", "day").agg(
        F.sum("records").alias("records"), F.sum("missing").alias("missing")
    )
