"""The columns of tables, as Spark types. Those of records are made from the records themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import inspect
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from gateway.pipeline.ledgers import snapshot
from gateway.pipeline.ledgers.snapshot import Snapshot
from gateway.usage import records
from gateway.usage.records import Event, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN: dict[type, DataType] = {
    inspect.IntType: LongType(),
    inspect.FloatType: DoubleType(),
    inspect.StrType: StringType(),
    inspect.BoolType: BooleanType(),
    inspect.LiteralType: StringType(),
}


def _bare(kind: inspect.Type) -> inspect.Type:
    """Return the type of a field without what is said of it, and without None."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):  # with None
        (other,) = [it for it in kind.types if not isinstance(it, inspect.NoneType)]
        return _bare(other)
    return kind


def spark_type(kind: inspect.Type) -> DataType:
    """Return the type of a column for a field of a record."""
    kind = _bare(kind)
    if isinstance(kind, inspect.ListType):
        return ArrayType(spark_type(kind.item_type))
    if isinstance(kind, inspect.StructType):
        fields = (StructField(it.encode_name, spark_type(it.type)) for it in kind.fields)
        return StructType(list(fields))
    return _PLAIN[type(kind)]


def columns_of(record: type[msgspec.Struct]) -> StructType:
    """Return the columns of a kind of record: one for each field."""
    found = spark_type(inspect.type_info(record))
    assert isinstance(found, StructType)
    return found


def defaults_of(record: type[msgspec.Struct]) -> dict[str, object]:
    """Return what a field stands for when it is left out, by its name; None of those that must not
    be."""
    found = dict[str, object]()
    for it in msgspec.structs.fields(record):
        if it.default_factory is not msgspec.NODEFAULT:
            found[it.encode_name] = it.default_factory()
        else:
            found[it.encode_name] = None if it.default is msgspec.NODEFAULT else it.default
    return found


def texts_of(kind: DataType, name: str = "") -> list[str]:
    """Return the names of all fields that are texts, those of structs behind a dot."""
    if isinstance(kind, StringType):
        return [name]
    if isinstance(kind, ArrayType):
        return texts_of(kind.elementType, name)
    fields = kind.fields if isinstance(kind, StructType) else ()
    return [
        it
        for field in fields
        for it in texts_of(field.dataType, f"{name}.{field.name}".lstrip("."))
    ]


def choices_of(record: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """Return all values that fields may have, by the name of the field: of those that have few."""
    fields = ((it.encode_name, it.type) for it in msgspec.structs.fields(record))
    kinds = ((name, _bare(inspect.type_info(kind))) for name, kind in fields)
    return {
        name: tuple(map(str, kind.values))
        for name, kind in kinds
        if isinstance(kind, inspect.LiteralType)
    }


_NAMED: dict[str, DataType] = {
    "bigint": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "boolean": BooleanType(),
    "array<bigint>": ArrayType(LongType()),
    "array<string>": ArrayType(StringType()),
}


def struct(*fields: str) -> StructType:
    """Return columns by `name type`. (Spark's own reader of such texts needs a session.)"""
    pairs = (field.split(" ") for field in fields)
    return StructType([StructField(name, _NAMED[kind]) for name, kind in pairs])


DAY = StructField("day", StringType())
"""`YYYY-MM-DD` in UTC: of the record's own time."""


class Stream(NamedTuple):
    """A kind of records that come in files. `version`: of their schema. `time`: the field with a
    record's own time. `identity`: the fields by which a record is known. `required`: those that
    each must have."""

    record: type[msgspec.Struct]
    version: int
    time: str
    identity: tuple[str, ...]
    required: tuple[str, ...]


_NUMBERED = ("gw", "boot", "seq")
_OF_TOPIC = ("cluster", "snap_ms", "topic")

OF_GATEWAYS: dict[str, Stream] = {
    "usage": Stream(Usage, records.VERSION, "start_ms", _NUMBERED, (*_NUMBERED, "start_ms", "op")),
    "events": Stream(
        *(Event, records.VERSION, "time_ms", _NUMBERED, (*_NUMBERED, "time_ms", "event"))
    ),
}
"""The kinds of records that gateways write, by their table: each into a folder of its own."""

RECORDS: dict[str, Stream] = {
    **OF_GATEWAYS,
    "stored": Stream(
        *(Snapshot, snapshot.VERSION, "snap_ms", (*_OF_TOPIC, "partition"), _OF_TOPIC)
    ),
}
"""All kinds of records."""


def _with_day(columns: StructType) -> StructType:
    return StructType([*columns.fields, DAY])


SUMS = (
    *("msgs", "entries", "bytes_wire", "sent_msgs", "sent_bytes", "refused", "errors"),
    *("throttle_count", "throttle_ms", "open_ms"),
)
"""Fields of usage records that are added up."""

PEAKS = ("peak_msgs_1s", "peak_bytes_1s", "held_bytes_max", "clients")
"""Fields of which the most counts."""

KEYS = ("op", "cluster", "listener", "tenant", "namespace", "topic", "subscription", "principal")
"""Fields by which usage is summed up."""


def _longs(names: Iterable[str]) -> list[str]:
    return [f"{name} bigint" for name in names]


def _strings(names: Iterable[str]) -> list[str]:
    return [f"{name} string" for name in names]


_ROLLUP = (
    *_strings(KEYS),
    *_longs(SUMS),
    *_longs(PEAKS),
    "networks bigint",
    "records bigint",
)
_LATENCY = (
    *_strings(("listener", "tenant", "lat_what")),
    "lat_bucket array<bigint>",
    *_longs(("lat_count", "lat_sum_us")),
    *(f"{name} double" for name in ("p50_s", "p95_s", "p99_s")),
)

_INCIDENT = (
    *("cluster string", "culprit string"),
    *_longs(("start_ms", "end_ms", "slots")),
    *("victims array<string>", "share double", "z double", "growth double"),
    *("slower double", "held_ms bigint"),
)

_USAGE = columns_of(Usage)

WATCHED: dict[str, StructType] = {
    "alerts": struct(*_INCIDENT, *_longs(("told_ms", "first_run", "last_run")), "day string"),
    "watched_runs": struct(
        *_longs(("run", "batch", "at_ms", "records", "late", "repeated", "bad", "alerts")),
        *_longs(("newest_ms", "slot_ms")),
        "day string",
    ),
    "watched_slots": StructType(
        [
            *struct(*_strings(("op", "cluster", "listener", "tenant", "lat_what"))).fields,
            *struct(*_longs(("start_ms", "sent_bytes", "bytes_wire", "sent_msgs", "msgs"))).fields,
            *struct(*_longs(("lat_count", "lat_sum_us"))).fields,
            _USAGE["throttles"],
        ]
    ),
    "watched_signs": struct(
        *("cluster string", "tenant string", "slot_ms bigint", "share double", "z double"),
        *("growth double", "slower double", "held_ms bigint", "grows boolean", "suffers boolean"),
    ),
    "watched_numbers": struct(
        "gw string", "boot string", *_longs(("first_seq", "last_seq", "last_ms"))
    ),
    "watched_usual": struct(
        *("cluster string", "tenant string", "name string", "time_ms bigint", "n bigint"),
        *("mid double", "mad double", "learnt_ms bigint", "slot_ms bigint"),
    ),
    "watched_told": struct("run bigint"),
}
"""The tables of alerts, which are in a folder of their own; see `watching`."""

TABLES: dict[str, StructType] = {
    **{name: _with_day(columns_of(stream.record)) for name, stream in RECORDS.items()},
    "quarantine": struct(
        "stream string", "path string", "reason string", "line string", "day string"
    ),
    "files": struct(
        *("stream string", "path string"),
        *_longs(("size", "records", "quarantined", "missing")),
    ),
    "hourly": struct(*_ROLLUP, "hour_ms bigint", "day string"),
    "daily": struct(*_ROLLUP, "day string"),
    "latency_hourly": struct(*_LATENCY, "hour_ms bigint", "day string"),
    "latency_daily": struct(*_LATENCY, "day string"),
    "completeness": struct(
        *("stream string", "gw string", "boot string"),
        *_longs(("first_seq", "last_seq", "records")),
        "day string",
    ),
    "stored_daily": struct(
        *("cluster string", "tenant string", "namespace string", "topic string"),
        *_longs(("byte_hours", "bytes_most", "bytes_last")),
        "day string",
    ),
    "neighbours": struct(*_INCIDENT, "day string"),
    "abuse": struct(
        *("kind string", "principal string", "network string"),
        *_longs(("start_ms", "end_ms", "failures", "principals", "networks")),
        *("usual double", "is_attack boolean", "day string"),
    ),
    **WATCHED,
}
"""The columns of all tables. Those without a column `day` have no days."""
