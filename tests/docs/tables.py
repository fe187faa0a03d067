"""`python -m tests.docs.tables`: writes docs/pipeline-tables.md from the schema of the pipeline.

A column that is named as a field of usage records or events means the same: the page names it with
its type, and `docs/usage.schema.json` says the rest. Fields of snapshots are described by their
classes, what only tables have is described here. A test holds the file to the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from pyspark.sql.types import ArrayType, StructType

from gateway.pipeline.ledgers.snapshot import Cursor, Ledger, Snapshot
from gateway.pipeline.schema import DAY, OF_GATEWAYS, PEAKS, TABLES, WATCHED
from gateway.usage.records import Usage, Wait

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline-tables.md"

SECTIONS: Mapping[tuple[str, ...], str] = {
    ("usage",): "What one [key](usage.md#what-a-record-says) used in one interval.",
    ("events",): "One event of a client.",
    ("stored",): "What a cluster stored of one topic at the time of a snapshot.",
    ("quarantine",): "A line that is not a record. Its day is the one in the path of its file.",
    ("files",): "A file that was read. This table has no column `day`.",
    ("hourly", "daily"): "What one key used in an hour, or in a day. Numbers are sums; "
    + ", ".join(f"`{it}`" for it in PEAKS)
    + " are the highest value in one record.",
    ("latency_hourly", "latency_daily"): "How long clients of a tenant waited.",
    ("completeness",): "The numbers (`seq`) of the records of a gateway's process.",
    ("stored_daily",): "What was stored of a topic.",
    ("neighbours", "alerts"): "An incident: the traffic of one tenant, the culprit, grew and other "
    "tenants suffered. Its day is that of its start. `alerts` are in `tables/watch`.",
    ("abuse",): "An attack on credentials, or a mistake that looks like an attack. Its day is that "
    "of its start.",
    ("watched_runs",): "A batch of files that `neighbours --watch` read, in `tables/watch`.",
}
"""By tables: what a row is. Of two tables one has all columns of the other one."""

INTERNAL = {*WATCHED} - {name for names in SECTIONS for name in names}
"""What one batch of files leaves for the next."""

STRUCTURES = {"throttles": Wait, "ledgers": Ledger, "cursors": Cursor}
"""By column: what is in its list."""

_INCIDENT = {
    "culprit": "the tenant whose traffic grew",
    "start_ms": "begin of the incident",
    "end_ms": "end of the incident, exclusive",
    "slots": "number of time slots in which the culprit's traffic grew while others suffered",
    "victims": "tenants that suffered",
    "share": "the culprit's mean share of the traffic, from 0 to 1",
    "z": "most standard deviations by which the culprit's rate was above its usual rate",
    "growth": "the culprit's mean rate divided by its usual rate",
    "slower": "highest of a victim's latency divided by its usual latency; null if not known",
    "held_ms": "milliseconds for which rules throttled the victims",
}


@cache
def described(record: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return what a class says of its fields, without the point at the end."""
    _, defined = msgspec.json.schema_components([record])
    (schema,) = (it for name, it in defined.items() if name == record.__name__)
    fields = cast("dict[str, Any]", schema)["properties"].items()
    said = {name: it["description"].removesuffix(".") for name, it in fields if "description" in it}
    return {name: text[0].lower() + text[1:] for name, text in said.items()}


OWN: Mapping[str, Mapping[str, str]] = {
    "stored": {
        "source": "where the snapshot was read: `zookeeper` or `admin`",
        "cursors": "subscriptions",
        **{
            name: text
            for name, text in described(Snapshot).items()
            if text != described(Usage).get(name)
        },
    },
    "quarantine": {
        "stream": "`usage`, `events` or `stored`",
        "path": "path of the line's file",
        "reason": "why the line is not a record",
        "line": "first 2,000 characters of the line",
    },
    "files": {
        "stream": "`usage`, `events` or `stored`",
        "path": "path of the file",
        "size": "bytes of the file",
        "records": "records in the file",
        "quarantined": "lines in the file that are not records",
        "missing": "records that the file lacks, by the numbers in its name",
    },
    "hourly": {
        "networks": "different client networks",
        "records": "records that were summed up",
        "hour_ms": "begin of the hour",
    },
    "latency_hourly": {
        "p50_s": "seconds; half of the durations are shorter",
        "p95_s": "seconds; 95 % of the durations are shorter",
        "p99_s": "seconds; 99 % of the durations are shorter",
        "hour_ms": "begin of the hour",
    },
    "completeness": {
        "stream": "`usage` or `events`",
        "first_seq": "lowest number of a record",
        "last_seq": "highest number of a record",
        "records": "records from first_seq to last_seq that the tables have; others are missing",
    },
    "stored_daily": {
        "byte_hours": "bytes times hours; 10^9 are a GB-hour",
        "bytes_most": "most bytes in one snapshot",
        "bytes_last": "bytes in the last snapshot",
    },
    "neighbours": _INCIDENT,
    "alerts": {
        **_INCIDENT,
        "told_ms": "when the incident was first reported",
        "first_run": "batch after which the incident was first reported",
        "last_run": "batch after which the incident was reported in this form",
    },
    "abuse": {
        "kind": "[what was seen](pipeline.md#noisy-neighbours-and-attacks)",
        "principal": "null if several, or none is known",
        "network": "network of the clients; null if several",
        "start_ms": "time of the first event",
        "end_ms": "time just after the last event",
        "failures": "number of failed authentications",
        "principals": "number of different principals that were tried",
        "networks": "different networks of the clients",
        "usual": "usual number of networks of the principal in a day",
        "is_attack": "false for a mistake",
    },
    "watched_runs": {
        "run": "number of the batch",
        "batch": "number of the batch in Spark",
        "at_ms": "when the batch was read",
        "records": "records used",
        "late": "records too late to be used",
        "repeated": "records that were read before",
        "bad": "lines that are not records",
        "alerts": "alerts that are new or have grown",
        "newest_ms": "end of the newest record so far",
        "slot_ms": "length of a slot",
    },
}
"""By table: what its columns mean that no record has, or that mean something else there."""

HEAD = """\
# Tables of the pipeline

[The pipeline](pipeline.md#tables) says how tables are kept. `make metrics` writes this page.

- Columns listed by type are [fields of records](usage.md#what-a-record-says), which
  [`usage.schema.json`](usage.schema.json) describes.
- Columns ending in `_ms` are milliseconds: durations, or times since 1970 UTC.
- A value that does not apply is 0 or null.
- The last column is the string `day`, `YYYY-MM-DD` in UTC: the day of the record's own time, unless
  the section says otherwise.
"""


def written() -> str:
    """Return the page of now."""
    listed = {name for names in SECTIONS for name in names}
    assert listed == {*TABLES} - INTERNAL, "a table has no section, or a section no table"
    return HEAD + "".join(_section(names, row) for names, row in SECTIONS.items())


def _section(names: tuple[str, ...], row: str) -> str:
    widest = max(names, key=lambda name: len(TABLES[name].fields))
    columns = [it for it in TABLES[widest].fields if it != DAY]
    own = {name for table in names for name in OWN.get(table, {})}
    lines = [f"\n## {', '.join(names)}\n", f"{row}\n"]
    lines += _of_records([it for it in columns if it.name not in own])
    for it in columns:
        if it.name in own:
            lines.append(f"- `{it.name}` {_kind(it.dataType)}{_only(names, it.name)}: ")
            lines[-1] += OWN[widest][it.name]
            lines += _inner(it)
    return "\n".join(lines) + "\n"


def _of_records(columns: list[StructField]) -> Iterator[str]:
    """Yield the columns that are fields of records, by their types."""
    unknown = {it.name for it in columns} - _fields()
    assert not unknown, f"nothing says what {unknown} are"
    for kind, found in groupby(sorted(columns, key=_place), key=lambda it: _kind(it.dataType)):
        same = list(found)
        yield f"- {kind}: " + ", ".join(f"`{it.name}`" for it in same)
        for it in same:
            yield from _inner(it)


def _place(column: StructField) -> tuple[int, str]:
    """Return where a column of records stands: those of one type together, most of them first."""
    name = column.dataType.typeName()
    return ("string", "long", "boolean", "array").index(name), _kind(column.dataType)


def _inner(column: StructField) -> Iterator[str]:
    """Yield the fields of the structures in a list."""
    kind = column.dataType
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        said = described(STRUCTURES[column.name])
        for it in kind.elementType.fields:
            text = f": {said[it.name]}" if it.name in said else ""
            yield f"    - `{it.name}` {_kind(it.dataType)}{text}"


def _only(names: tuple[str, ...], column: str) -> str:
    """Return which of two tables has a column, if not both."""
    having = [name for name in names if column in TABLES[name].fieldNames()]
    return "" if len(having) == len(names) else f" (only `{having[0]}`)"


def _kind(kind: DataType) -> str:
    """Return a type as it is read best."""
    text = kind.simpleString()
    if text.startswith("array<struct"):
        return "array of structures"
    return f"`{text}`" if "<" in text else text


@cache
def _fields() -> frozenset[str]:
    """Return the names of the fields of records that gateways write."""
    return frozenset(
        field.encode_name
        for stream in OF_GATEWAYS.values()
        for field in msgspec.structs.fields(stream.record)
    )


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
    print("written: docs/pipeline-tables.md")
