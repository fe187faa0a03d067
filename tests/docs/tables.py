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
    ("usage",): "What one key used in one interval.",
    ("events",): "A single event of a client.",
    ("stored",): "What a cluster stores of one topic, at the time of a snapshot.",
    ("quarantine",): "A line that is no record. Its day is that of the folder of its file.",
    ("files",): "A file that was taken. It has no day.",
    ("hourly", "daily"): "What one key used in an hour, or a day: sums; the most of one record of "
    + ", ".join(f"`{it}`" for it in PEAKS)
    + ".",
    ("latency_hourly", "latency_daily"): "How long clients of a tenant waited.",
    ("completeness",): "The numbers of records of a gateway's process.",
    ("stored_daily",): "What was stored of a topic.",
    ("neighbours", "alerts"): "An incident in which one tenant grew and others suffered; `alerts` "
    "are in `tables/watch`. Its day is that of its start.",
    ("abuse",): "An attack on credentials, or what only looks like one, on the day of its start.",
    ("watched_runs",): "A batch of new files of `neighbours --watch`, in `tables/watch`.",
}
"""By tables: what a row is. Of two tables one has all columns of the other one."""

INTERNAL = {*WATCHED} - {name for names in SECTIONS for name in names}
"""What one batch of files leaves for the next."""

STRUCTURES = {"throttles": Wait, "ledgers": Ledger, "cursors": Cursor}
"""By column: what is in its list."""

_INCIDENT = {
    "culprit": "the tenant that grew",
    "start_ms": "begin",
    "end_ms": "end, exclusive",
    "slots": "slots in which it grew while others suffered",
    "victims": "tenants that suffered",
    "share": "its mean share of the traffic, from 0 to 1",
    "z": "most standard deviations above its usual rate",
    "growth": "mean factor of its usual rate",
    "slower": "highest factor of a victim's latency; null if not known",
    "held_ms": "for which rules held the victims",
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
        "source": "`zookeeper` or `admin`",
        "cursors": "subscriptions",
        **{
            name: text
            for name, text in described(Snapshot).items()
            if text != described(Usage).get(name)
        },
    },
    "quarantine": {
        "stream": "`usage`, `events` or `stored`",
        "path": "of its file",
        "reason": "why it is no record",
        "line": "its first 2,000 characters",
    },
    "files": {
        "stream": "`usage`, `events` or `stored`",
        "path": "where it is",
        "size": "bytes",
        "records": "records that were read",
        "quarantined": "lines that are no records",
        "missing": "numbers of its name that it lacks",
    },
    "hourly": {
        "networks": "different client networks",
        "records": "records summed up",
        "hour_ms": "begin of the hour",
    },
    "latency_hourly": {
        "p50_s": "half of the durations are below so many seconds",
        "p95_s": "95 % are",
        "p99_s": "99 % are",
        "hour_ms": "begin of the hour",
    },
    "completeness": {
        "stream": "`usage` or `events`",
        "first_seq": "lowest number",
        "last_seq": "highest number",
        "records": "how many there are; the others between are missing",
    },
    "stored_daily": {
        "byte_hours": "bytes times hours; 10^9 are a GB-hour",
        "bytes_most": "of one snapshot",
        "bytes_last": "of the last snapshot",
    },
    "neighbours": _INCIDENT,
    "alerts": {
        **_INCIDENT,
        "told_ms": "first reported",
        "first_run": "batch that it was first reported after",
        "last_run": "batch that it was reported after in this form",
    },
    "abuse": {
        "kind": "[what was seen](pipeline.md#noisy-neighbours-and-attacks)",
        "principal": "null if several, or none",
        "network": "null if several",
        "start_ms": "first event",
        "end_ms": "just after the last event",
        "failures": "failed authentications",
        "principals": "different ones that were tried",
        "networks": "different ones",
        "usual": "usual number of networks of the principal in a day",
        "is_attack": "false: a mistake",
    },
    "watched_runs": {
        "run": "number of the batch",
        "batch": "its number in Spark",
        "at_ms": "when it was taken",
        "records": "records used",
        "late": "records too late to be used",
        "repeated": "records that had come before",
        "bad": "lines that are no records",
        "alerts": "alerts that are new, or grew",
        "newest_ms": "end of the newest record so far",
        "slot_ms": "length of slots",
    },
}
"""By table: what its columns mean that no record has, or that mean something else there."""

HEAD = """\
# Tables of the pipeline

Written by `make metrics` from the code; [the pipeline](pipeline.md#tables) says how tables are
kept. Python programs see the same by `Lake(spark, "tables").read("daily").printSchema()`.

- Lists by type are of [fields of records](usage.md#what-a-record-says):
  [`usage.schema.json`](usage.schema.json) says what they mean.
- Names that end in `_ms` are milliseconds, those of a time since 1970 UTC.
- What does not apply is 0 or null.
- The last column is `day` string: `YYYY-MM-DD` in UTC, by the record's own time unless it is said
  otherwise.
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
