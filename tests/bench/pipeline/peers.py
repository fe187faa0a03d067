"""`python -m tests.bench.pipeline.peers WHO FORM SOURCE OUT`: one rollup of usage.

By Spark, DuckDB or Polars (WHO): by hour, tenant, namespace, topic, principal and operation, with
all sums that `gateway pipeline rollup` has. The question is the same for all, from the lines of
gateways (FORM `lines`) or from the table `usage` (`table`), into Parquet. `same ONE OTHER` compares
two responses.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.pipeline.schema import SUMS

if TYPE_CHECKING:  # both are there only when the bench runs
    import duckdb  # type: ignore[import-not-found, unused-ignore]
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

BY = ("tenant", "namespace", "topic", "principal", "op")

HOUR_MS = 3_600_000

MEMORY = "2GB"
"""As Spark has it."""


def main(words: list[str]) -> int:
    who, *rest = words
    if who == "same":
        return _same(*rest)
    form, source, out = rest
    {"spark": _spark, "duckdb": _duckdb, "polars": _polars}[who](form == "lines", source, out)
    return 0


def _spark(is_lines: bool, source: str, out: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from gateway.pipeline.schema import columns_of
    from gateway.pipeline.sessions import session
    from gateway.usage.records import Usage

    spark = session("plain rollup")
    reader = spark.read.schema(columns_of(Usage)).option("recursiveFileLookup", "true")
    usage = reader.json(source) if is_lines else reader.parquet(source)
    hour = (F.col("start_ms") - F.col("start_ms") % HOUR_MS).alias("hour_ms")
    sums = usage.groupBy(hour, *BY).agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in SUMS),
        F.count(F.lit(1)).alias("records"),
    )
    sums.write.parquet(out)
    spark.stop()


def _connected(folder: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    settings = {"threads": os.cpu_count() or 1, "memory_limit": MEMORY, "temp_directory": folder}
    return duckdb.connect(config={key: str(value) for key, value in settings.items()})


def _duckdb(is_lines: bool, source: str, out: str) -> None:
    fields = ("start_ms", *SUMS)
    columns = dict.fromkeys(fields, "BIGINT") | dict.fromkeys(BY, "VARCHAR")
    table = (
        f"read_json('{source}/**/*.gz', format='newline_delimited', columns={columns})"
        if is_lines
        else f"read_parquet('{source}/**/*.parquet', hive_partitioning=false)"
    )
    hour = f"start_ms - start_ms % {HOUR_MS} AS hour_ms"
    sums = ", ".join(f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in SUMS)
    query = f"SELECT {hour}, {', '.join(BY)}, {sums}, count(*) AS records FROM {table} GROUP BY ALL"
    Path(out).mkdir()
    target = f"{out}/part.parquet"
    _connected(f"{out}.temporary").execute(f"COPY ({query}) TO '{target}' (COMPRESSION zstd)")


def _polars(is_lines: bool, source: str, out: str) -> None:
    import polars as pl

    if is_lines:
        schema = {
            "start_ms": pl.Int64,
            **dict.fromkeys(SUMS, pl.Int64),
            **dict.fromkeys(BY, pl.String),
        }
        usage = pl.scan_ndjson(f"{source}/**/*.gz", schema=schema)
    else:
        usage = pl.scan_parquet(f"{source}/**/*.parquet", hive_partitioning=False)
    Path(out).mkdir()
    _rolled(usage).sink_parquet(f"{out}/part.parquet", compression="zstd")


def _rolled(usage: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    hour = (pl.col("start_ms") - pl.col("start_ms") % HOUR_MS).alias("hour_ms")
    sums = (pl.col(name).fill_null(0).sum() for name in SUMS)
    return usage.group_by(hour, *BY).agg(*sums, pl.len().cast(pl.Int64).alias("records"))


def _same(one: str, other: str) -> int:
    """Print whether two responses are the same, and how many rows they have."""
    connection = _connected(f"{one}.temporary")
    columns = ", ".join(("hour_ms", *BY, *SUMS, "records"))
    first, second = (f"SELECT {columns} FROM '{it}/*.parquet'" for it in (one, other))
    odd = f"(({first}) EXCEPT ALL ({second})) UNION ALL (({second}) EXCEPT ALL ({first}))"
    ((different,),) = connection.sql(f"SELECT count(*) FROM ({odd})").fetchall()
    ((rows,),) = connection.sql(f"SELECT count(*) FROM ({first})").fetchall()
    print(f"{rows} rows, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
