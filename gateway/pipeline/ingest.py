"""Ingest: files of records become tables by day, each record once.

One run takes the files that no earlier run has taken, in batches. Of each batch

1. every line is parsed by the schema; what is no record goes to `quarantine`, with the reason;
2. the days of the records are found, and these days are made anew: what they had, and what came, by
   (gateway, boot, sequence) once. A file that comes late, or twice, gives the same tables;
3. one commit shows the days, the quarantined lines and the files that were taken.

A record belongs to the day of its own time, which is that of its gateway's clock. Where one
identity has several contents on a day, which no gateway writes, the one with the smallest digest
stays, whatever the order of files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.storagelevel import StorageLevel

from gateway.errors import ConfigurationError
from gateway.pipeline.given import given
from gateway.pipeline.schema import (
    OF_GATEWAYS,
    RECORDS,
    TABLES,
    choices_of,
    columns_of,
    defaults_of,
    struct,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from gateway.pipeline.lake import Lake, State

FILES_AT_ONCE = 20_000
"""Files of one commit, whose names pass through the driver: some megabytes."""

LONGEST_LINE = 2_000
"""Characters of a quarantined line that are kept: more than usual records have."""

LONGEST_READ = 16 << 20
"""Bytes of a line that is read at all: the memory of a job holds some of them. Longer ones are
passed over, and are missing by the numbers in the name of their file."""

EARLIEST = "2020-01-01"
"""Records of earlier days are wrong: there was no gateway."""

AHEAD_MS = 86_400_000
"""How far the clock of a gateway may be ahead of the time of the run. Its records count by their
own time; beyond a day that is no clock any more."""

MOST = 10**15
"""Of each number of a record: a petabyte, or eleven days in nanoseconds. Sums of ten thousand
larger ones could pass what 64 bits hold, which would fail a job."""

_CORRUPT = "_corrupt"

_STRICT = {
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
"""How JSON is read: as RFC 8259 has it. Of a key that is there twice the last one counts."""

_RETIRED = "which is retired"
"""The end of the reason why a record of a day is put aside that `retain` let go."""

NAMES = "{*.jsonl*,part-*.txt*}"
"""Of files of lines: as gateways give them, and as Spark does, in the inbox."""

READING = {
    "ignoreCorruptFiles": "true",
    "mapreduce.input.linerecordreader.line.maxlength": str(LONGEST_READ),
}
"""How lines of files are read: those before a tear count."""

_NUMBERED = r"-(\d{12})-(\d{12})\.jsonl(\.[a-z0-9]+)?$"
"""The end of the names that gateways give: the first and the last number in a file."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a batch gave. `new`: the records that tables had not. `missing`: records that files
    lack, by their names. `days`: made anew. `ahead_ms`: how far the latest record is ahead of the
    run, which is of the gateway (or the cluster) `ahead`. `retired`: of the quarantined lines,
    those of days that are gone."""

    files: int
    records: int
    new: int
    quarantined: int
    missing: int
    days: Sequence[str]
    ahead_ms: int = 0
    ahead: str = ""
    retired: int = 0

    @property
    def read(self) -> int:
        """All lines: records that are new or doubled, and what was put aside."""
        return self.records + self.quarantined

    @property
    def doubled(self) -> int:
        """Records that tables had, or that came more than once."""
        return self.records - self.new


def ingest(
    lake: Lake,
    source: str,
    stream: str,
    now_ms: int,
    *,
    files_at_once: int = FILES_AT_ONCE,
    progress: Callable[[Taken], None] = lambda _: None,
) -> list[Taken]:
    """Take all new files of a stream, and return what each batch gave. `source`: the folder in
    which gateways have one for each stream; or that of snapshots. `now_ms`: milliseconds since
    1970.

    Raises `ConfigurationError` if there is no such folder.
    """
    found, batch, is_last = list[Taken](), set[tuple[str, int]](), False
    while True:
        state = lake.state()
        new = _new_files(lake, source, stream, state, files_at_once)
        if is_last:  # what was written since is for later
            new = [it for it in new if it in batch]
        if batch.intersection(new):  # another job's commit has won, so these are taken again
            del found[-1]
        if not new:
            return found
        batch, is_last = set(new), len(new) < files_at_once
        found.append(_take(lake, stream, now_ms, state, new))
        progress(found[-1])


# -- files -------------------------------------------------------------------------------------


def _new_files(
    lake: Lake, source: str, stream: str, state: State, most: int
) -> list[tuple[str, int]]:
    """Return the paths and sizes of files that no commit names, in the order of their paths."""
    listed = listing(lake.spark, folder_of(source, stream))
    known = lake.read("files", state=state).where(F.col("stream") == stream)
    new = listed.join(known.select("path", "size"), ["path", "size"], "left_anti")
    rows = new.orderBy("path").limit(most).collect()
    return [(row.path, row.size) for row in rows]


def folder_of(source: str, stream: str) -> str:
    """Return the folder of a stream's files; see `ingest`."""
    return f"{source.rstrip('/')}/{stream}" if stream in OF_GATEWAYS else source


def streams(spark: SparkSession, source: str, *, required: bool = True) -> list[str]:
    """Return the kinds of records that a folder has; gateways may write no events. Raises
    `ConfigurationError` if it has none, where one is required."""
    found, missing = [], []
    for stream in OF_GATEWAYS:
        try:
            listing(spark, folder_of(source, stream))
            found.append(stream)
        except ConfigurationError as error:
            missing.append(error)
    if required and not found:
        raise missing[0]
    return found


def listing(spark: SparkSession, folder: str) -> DataFrame:
    """Return path and size of all files of lines below a folder; their content is not read. Names
    that begin with a dot are of files that are still written, which Spark leaves out, as it does
    those that have nothing."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        files = reader.option("pathGlobFilter", NAMES).load(folder)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise ConfigurationError(
                f"{folder}: there is no such folder, or no right to see it; "
                "name the one that usage.folder names"
            ) from None
        raise
    return files.select("path", F.col("length").alias("size"))


# -- a batch -----------------------------------------------------------------------------------


def _take(
    lake: Lake, stream: str, now_ms: int, state: State, new: Sequence[tuple[str, int]]
) -> Taken:
    before = state.retired.get(stream, EARLIEST)
    lines = parsed(lake.spark, stream, [path for path, _ in new], now_ms, before)
    # The texts of good lines would be most of what is kept.
    lines = lines.withColumn("line", F.when(F.col("reason").isNotNull(), F.col("line")))
    lines.persist(StorageLevel.DISK_ONLY)  # parsing takes longer than all the rest
    try:
        good = lines.where(F.col("reason").isNull()).select(*filled(stream), "day")
        latest = F.max(F.struct(RECORDS[stream].time, RECORDS[stream].identity[0]))
        found = good.groupBy("day").agg(latest.alias("latest")).orderBy("day").collect()
        days = [str(row.day) for row in found]
        files = _files(lake.spark, stream, new, lines)
        change = lake.change("ingest", now_ms, state)
        had = lake.read(stream, days, state=state)
        whole = once(had.unionByName(good), RECORDS[stream].identity)
        added = change.replace(stream, whole, days) - had.count()
        bad = _quarantined(stream, lines)
        retired = F.count_if(F.endswith("reason", F.lit(_RETIRED))).alias("retired")
        late = {str(it.day): it.retired for it in bad.groupBy("day").agg(retired).collect()}
        if marks := sorted(late):
            kept = lake.read("quarantine", marks, state=state)
            change.replace("quarantine", kept.unionByName(bad), marks)
        change.append("files", files)
        counts = ("records", "quarantined", "missing")
        (row,) = files.agg(*(F.sum(it).alias(it) for it in counts)).collect()
        change.commit()
    finally:
        lines.unpersist()
    time, who = max((tuple(it.latest) for it in found), default=(0, ""))
    ahead_ms = max(0, time - now_ms)
    sums = row.records, added, row.quarantined, row.missing
    ahead = who if ahead_ms else ""
    return Taken(len(new), *sums, days, ahead_ms, ahead, sum(late.values()))


def parsed(
    spark: SparkSession,
    stream: str,
    paths: Sequence[str],
    now_ms: int,
    retired: str = EARLIEST,
) -> DataFrame:
    """Return the lines of files: `path`, `line`, the `record`, the `reason` why it is none, and its
    `day`. A torn file gives the lines before the tear. Records of days before `retired` are put
    aside."""
    texts = spark.read.options(**READING).text([_plain(path) for path in paths])
    return as_records(texts.select(_path(), "value"), stream, now_ms, retired)


def as_records(texts: DataFrame, stream: str, now_ms: int, retired: str = EARLIEST) -> DataFrame:
    """Return the same of lines that are in the column `value`."""
    columns = columns_of(RECORDS[stream].record)
    marked = StructType([*columns.fields, StructField(_CORRUPT, StringType())])
    read = F.from_json("line", marked, _STRICT)
    lines = texts.withColumnRenamed("value", "line").withColumn("record", read)
    time = F.col(f"record.{RECORDS[stream].time}")
    day = F.date_format(F.timestamp_millis(time), "yyyy-MM-dd")
    # In two steps: Java does not compile code that is as long as all checks together.
    lines = lines.withColumn("reason", _unread(stream))
    lines = lines.withColumn("reason", _reason(stream, now_ms, retired))
    return lines.withColumn("day", F.when(F.col("reason").isNull(), day))


def _plain(path: str) -> str:
    """Return a path that is no pattern of others."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _path() -> Column:
    """Return the path of a line's file, as `listing` has it. Spark gives it with escapes, among
    which a plus is itself."""
    escaped = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    return F.url_decode(escaped).alias("path")


def _unread(stream: str) -> Column:
    """Return why a line is not read as a record; null if it is."""
    record = F.col("record")
    is_none = record.isNull() | F.col(f"record.{_CORRUPT}").isNotNull() | ~_is_one()
    return (
        F.when(~F.is_valid_utf8("line"), "no UTF-8")
        .when(is_none, "no JSON of a record")
        .when(_has_no_text(stream), "no text where one belongs")
    )


def _reason(stream: str, now_ms: int, retired: str) -> Column:
    """Return why a line is not taken as a record: it is not read, or its values are wrong; null if
    it is taken."""
    kind, unread = RECORDS[stream], F.col("reason")
    time = F.col(f"record.{kind.time}")
    earliest, oldest = (F.unix_millis(F.lit(it).cast("timestamp")) for it in (EARLIEST, retired))
    checks = [
        (unread.isNotNull(), unread),
        (F.col("record.v").isNull(), F.lit("no version")),
        (F.col("record.v") != kind.version, F.concat(F.lit("version "), F.col("record.v"))),
        *((F.col(f"record.{name}").isNull(), F.lit(f"no {name}")) for name in kind.required),
        *(
            (~F.col(f"record.{name}").isin(*values), F.lit(f"unknown {name}"))
            for name, values in choices_of(kind.record).items()
        ),
        (time < earliest, F.lit(f"of a day before {EARLIEST}")),
        (time < oldest, F.lit(f"of a day before {retired}, {_RETIRED}")),
        (time > F.lit(now_ms + AHEAD_MS), F.lit("more than a day ahead")),
        *((F.col(f"record.{name}") < 0, F.lit(f"{name} below 0")) for name in _counts(stream)),
        *(
            (F.col(f"record.{name}") > MOST, F.lit(f"{name} above {MOST}"))
            for name in _counts(stream)
        ),
    ]
    if "seq" in kind.identity:
        checks.append((F.col("record.seq") < 1, F.lit("seq below 1")))
    if stream == "usage":
        odd = F.exists("record.lat_bucket", lambda it: it.isNull() | (it < 0) | (it > MOST))
        checks.append((odd, F.lit("lat_bucket with odd numbers")))
    found = F.when(F.lit(False), "")
    for is_wrong, reason in checks:  # one flat expression: Spark Connect refuses deep ones
        found = found.when(is_wrong, reason)
    return found


def _is_one() -> Column:
    """Return whether a line has nothing behind its record, up to whose end Spark reads it. No line
    that has more ends both an array and an object around it before its own end; where the only
    brace is at the end, nothing can be behind it, which takes less time to see."""
    around = (("[", "]"), ('[{"":', "}]"))
    texts = (F.concat(F.lit(before), "line", F.lit(after)) for before, after in around)
    of_array, of_object = (F.json_array_length(it).eqNullSafe(F.lit(1)) for it in texts)
    return F.rlike("line", F.lit(r"\A[^}]*\}\z")) | (of_array & of_object)


_LIKE_NO_TEXT = r"(?m)^(?:-?[0-9][0-9.eE+-]*|true|false|[\[{].*)$"
"""What Spark makes of values of JSON that are no texts, where it reads a text."""


def _has_no_text(stream: str) -> Column:
    """Return whether a record has something else than a text, or null, where a text belongs: Spark
    makes a text of it. Few records have what looks so; only their lines are searched, which takes
    as long as all the rest."""
    texts = texts_of(columns_of(RECORDS[stream].record))
    read = F.concat_ws("\n", *(F.col(f"record.{it}") for it in texts))
    pattern = _not_texts({it.rpartition(".")[2] for it in texts})
    return F.rlike(read, F.lit(_LIKE_NO_TEXT)) & F.rlike("line", F.lit(pattern))


def _not_texts(names: Iterable[str]) -> str:
    """Return a pattern of JSON that has something else than a text, or null, in one of these
    fields, or whose keys have escapes: they may be any, and no gateway writes them. Within a text,
    quotes have a backslash before them, so what looks like a key is a key."""
    named = "|".join(sorted(names))
    return rf'(?<!\\)"(?:{named})"\s*:\s*[^"n\s]|\\u[0-9a-fA-F]{{4}}[^"\\]*"\s*:'


def filled(stream: str) -> list[Column]:
    """Return the fields of a record, with what those that are left out stand for."""
    found = []
    for name, value in defaults_of(RECORDS[stream].record).items():
        column = F.col(f"record.{name}")
        if isinstance(value, list):
            column = F.coalesce(column, F.array())
        elif value is not None:
            column = F.coalesce(column, F.lit(value))
        found.append(column.alias(name))
    return found


def _counts(stream: str) -> list[str]:
    """Return the fields that are numbers, none of which may be negative."""
    columns = columns_of(RECORDS[stream].record).fields
    taken = {"v", "seq", RECORDS[stream].time}
    return [it.name for it in columns if it.dataType.typeName() == "long" and it.name not in taken]


def once(records: DataFrame, identity: Sequence[str]) -> DataFrame:
    """Return each identity once on a day. (Days are made anew one by one, so what other days have
    must not matter.)"""
    values = [name for name in records.columns if name != "day"]
    digest = F.xxhash64(*values)
    same = Window.partitionBy("day", *identity).orderBy("digest")
    ranked = records.withColumn("digest", digest).withColumn("rank", F.row_number().over(same))
    return ranked.where(F.col("rank") == 1).drop("digest", "rank")


def _quarantined(stream: str, lines: DataFrame) -> DataFrame:
    """Return the lines that are no records. Their day is that in the path of their file."""
    day = F.regexp_extract("path", r"/dt=(\d{4}-\d\d-\d\d)/", 1)
    return lines.where(F.col("reason").isNotNull()).select(
        F.lit(stream).alias("stream"),
        "path",
        "reason",
        F.substring(F.make_valid_utf8("line"), 1, LONGEST_LINE).alias("line"),
        F.when(day != "", day).otherwise(F.lit(EARLIEST)).alias("day"),
    )


def _files(
    spark: SparkSession, stream: str, new: Sequence[tuple[str, int]], lines: DataFrame
) -> DataFrame:
    """Return a row for each file, with what it had. `missing`: of the numbers in its name, how many
    it has no line for; 0 if its name has none."""
    good = F.col("reason").isNull()
    read = lines.groupBy("path").agg(
        F.count_if(good).alias("records"), F.count_if(~good).alias("quarantined")
    )
    names = struct("path string", "size bigint")
    listed = given(spark, [{"path": path, "size": size} for path, size in new], names)
    first, last = (F.regexp_extract("path", _NUMBERED, it).try_cast("bigint") for it in (1, 2))
    counted = listed.join(read, "path", "left").na.fill(0, ["records", "quarantined"])
    lines_there = F.col("records") + F.col("quarantined")
    missing = F.greatest(F.lit(0), last - first + 1 - lines_there)
    rows = counted.withColumn("missing", F.coalesce(missing, F.lit(0)))
    return rows.withColumn("stream", F.lit(stream)).select(*TABLES["files"].fieldNames())


def new_days(state: State, stream: str) -> Iterator[tuple[str, str]]:
    """Yield the days of a table, and the generation of each."""
    for day, generations in sorted(state.days.get(stream, {}).items()):
        yield day, generations[-1]
