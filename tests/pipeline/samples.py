"""Records and their files, as gateways write them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gateway.usage.records import Event, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gateway.pipeline.demo.planted import Planted
    from gateway.pipeline.lake import Lake

NOW = "2026-11-24T12:00"
"""When jobs run."""

Record = Usage | Event | str
"""A record, or a line that is none."""


def ms(time: str) -> int:
    """Return milliseconds since 1970 of a time in UTC: `2026-11-20T03:00`."""
    return round(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)


def used(seq: int, time: str = "2026-11-20T03:00", **fields: Any) -> Usage:
    """Return a record of usage."""
    usual = {"v": 1, "gw": "edge-1", "boot": "b", "dur_ms": 10_000, "op": "send", "tenant": "acme"}
    return Usage(**{**usual, "seq": seq, "start_ms": ms(time), **fields})


def happened(seq: int, time: str = "2026-11-20T03:00", **fields: Any) -> Event:
    """Return an event."""
    usual = {"v": 1, "gw": "edge-1", "boot": "b", "event": "connected"}
    return Event(**{**usual, "seq": seq, "time_ms": ms(time), **fields})


def line(record: Record) -> bytes:
    """Return a line of a file."""
    return (record.encode() if isinstance(record, str) else msgspec.json.encode(record)) + b"\n"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of records."""

    path: Path

    @property
    def url(self) -> str:
        return str(self.path)

    def add(
        self, records: Sequence[Record], *, closed: str = "2026-11-20T03:00", name: str = ""
    ) -> Path:
        """Add a file; return its path. `closed`: when the gateway closed it. `name`: another one
        than gateways give."""
        numbers = [it.seq for it in records if not isinstance(it, str)] or [0]
        kinds = {type(it) for it in records if not isinstance(it, str)}
        stream = "events" if kinds == {Event} else "usage"
        day, hour = closed.split("T")
        folder = self.path / stream / f"dt={day}" / f"hr={hour[:2]}"
        folder.mkdir(parents=True, exist_ok=True)
        usual = f"edge-1-b-{numbers[0]:012}-{numbers[-1]:012}.jsonl.gz"
        path = folder / (name or usual)
        data = b"".join(map(line, records))
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path


def rows(table: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table, in order."""
    found: Iterable[Any] = (table.select(*columns) if columns else table).collect()
    return sorted((tuple(it) for it in found), key=repr)


def table(spark: SparkSession, records: Sequence[Usage | Event]) -> DataFrame:
    """Return records of one kind as a table has them."""
    from gateway.pipeline.schema import RECORDS, TABLES

    stream = "usage" if isinstance(records[0], Usage) else "events"
    found = []
    for it in records:
        values = msgspec.structs.asdict(it)
        at = datetime.fromtimestamp(values[RECORDS[stream].time] / 1000, UTC)
        waits = [msgspec.structs.astuple(wait) for wait in values.get("throttles", ())]
        whole = {**values, "throttles": waits, "day": f"{at:%Y-%m-%d}"}
        found.append(tuple(whole[name] for name in TABLES[stream].fieldNames()))
    return spark.createDataFrame(found, TABLES[stream])


@dataclass(frozen=True, slots=True)
class Month:
    """A made-up month in tables. `interval_ms`: of its records."""

    planted: Planted
    lake: Lake
    interval_ms: int
