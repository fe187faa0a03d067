"""What a batch leaves for the next one, in the tables of alerts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.given import given
from gateway.pipeline.lake import Lake
from gateway.pipeline.schema import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gateway.pipeline.lake import Change, State

RECENT_DAYS = 28
"""Days that have alerts, of which the last ones are looked at: no incident is longer. Runs are kept
for as many days."""

_RUNS = "watched_runs"


@dataclass(frozen=True, slots=True)
class Run:
    """What a batch gave. `run`: number of batches so far. `batch`: Spark's number of it. `records`
    were judged, `late` ones were not, `repeated` ones came before. `bad` lines are no records;
    `ingest` puts them aside. `newest_ms`: end of the newest record. `slot_ms`: of its slots."""

    run: int = 0
    batch: int = -1
    at_ms: int = 0
    records: int = 0
    late: int = 0
    repeated: int = 0
    bad: int = 0
    alerts: int = 0
    newest_ms: int = 0
    slot_ms: int = 0


def folder(tables: Lake) -> Lake:
    """Return the tables of alerts, which are below the other tables."""
    return Lake(tables.spark, f"{tables.base}/watch")


def beside(own: Lake) -> Lake:
    """Return the tables of what is not made by batches: what is usual, and what was given. They are
    apart, because a commit of a batch must never lose against one of another run."""
    return Lake(own.spark, f"{own.base}/beside")


def last(own: Lake, state: State) -> Run:
    """Return the last batch; one with the number 0 if there was none."""
    days = sorted(state.days.get(_RUNS, {}))[-1:]
    rows = own.read(_RUNS, days, state=state).orderBy(F.desc("run")).drop("day").limit(1)
    return next((Run(**row.asDict()) for row in rows.collect()), Run())


def since(own: Lake, before: Run) -> Run:
    """Return the sums of all batches after one, with the number of the last."""
    rows = recent(own, own.state(), _RUNS).where(F.col("run") > before.run)
    added = ("records", "late", "repeated", "bad", "alerts")
    names = [name for name in TABLES[_RUNS].fieldNames() if name != "day"]
    sums = rows.agg(*((F.sum if name in added else F.max)(name).alias(name) for name in names))
    (row,) = sums.collect()
    return Run(run=before.run) if row.run is None else Run(**row.asDict())


def note(own: Lake, state: State, change: Change, run: Run) -> None:
    """Add a batch to those that are known, and let old ones go."""
    day = f"{datetime.fromtimestamp(run.at_ms / 1000, UTC):%Y-%m-%d}"
    rows = given(own.spark, [{**asdict(run), "day": day}], TABLES[_RUNS])
    old = sorted(state.days.get(_RUNS, {}))[:-RECENT_DAYS]
    same_day = own.read(_RUNS, [day], state=state)
    change.replace(_RUNS, same_day.unionByName(rows), [day, *(it for it in old if it != day)])


def recent(own: Lake, state: State, table: str) -> DataFrame:
    """Return the last days of a table."""
    return own.read(table, sorted(state.days.get(table, {}))[-RECENT_DAYS:], state=state)
