"""Rows that a job has itself, as a table.

They go to Spark as one text that it parses itself: `createDataFrame` would start Python on its
workers, which then would all need one, of the same version.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def given(
    spark: SparkSession, rows: Sequence[Mapping[str, object]], columns: StructType
) -> DataFrame:
    """Return rows as a table with these columns. `rows`: values by column, some megabytes at
    most."""
    read = F.from_json(F.lit(json.dumps(rows)), ArrayType(columns))
    table = spark.range(1).select(F.explode(read).alias("row")).select("row.*")
    # From the false condition Spark learns, before it reads anything, that the table is empty.
    return table if rows else table.where(F.lit(False))
