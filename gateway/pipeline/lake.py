"""The tables of the pipeline in a folder: Parquet by day, replaced a day at a time.

A folder, on any filesystem that Spark reads, holds

    data/TABLE/GENERATION/dt=YYYY-MM-DD/*.parquet
    commits/GENERATION/part-*.json

A job writes its days as a new *generation*, which nobody reads yet, and then a *commit*: one small
file that says which days of which tables the generation replaces. It appears by one rename (or one
PUT, in an object store), so a reader sees all of a job's days or none of them, and a job that is
killed at any point leaves nothing but files that no commit names.

A commit has a number and names its parent. Two jobs that run at the same time write commits with
the same parent, of which one wins: the one with the higher number, or among equals with the smaller
id; the other one is on no chain, as if its job had never run. So nothing is merged wrongly: files
whose commit lost are ingested again by the next run.

Commits are read again for every view, which is a small job of Spark. A *checkpoint* is a commit
that repeats all that its ancestors said, so that few have to be read. What nobody needs any more is
removed by `keeping.compact`.

Days that were *retired* are gone for good. A commit says up to which day that is, by table, so that
a record that comes too late is put aside: alone it would stand for the whole day.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, NamedTuple, Self

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

from gateway.errors import ConfigurationError
from gateway.pipeline.given import given
from gateway.pipeline.schema import TABLES, struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

NO_DAY = ""
"""Stands for the day of rows that have none. Generations of them add up."""

CHECKPOINT = 50
"""Commits in a chain, after which one repeats all: reading each takes milliseconds."""

_COMMIT = "number bigint, id string, parent string, job string, at_ms bigint, checkpoint boolean, "
_ENTRIES = "entries array<struct<table: string, day: string, generation: string>>, "
_RETIRED = "retired map<string, string>"


@dataclass(frozen=True, slots=True)
class Commit:
    """`entries`: the generation that a day of a table has from this commit on; without a
    generation, the day is gone. `retired`: tables, and the day before which rows are refused."""

    number: int
    id: str
    parent: str
    job: str
    at_ms: int
    checkpoint: bool
    entries: tuple[tuple[str, str, str], ...]
    retired: tuple[tuple[str, str], ...] = ()

    @property
    def generation(self) -> str:
        return f"{self.number:08d}-{self.id}"


@dataclass(slots=True)
class State:
    """What readers see. `days`: generations by table and day; those without a day add up.
    `retired`: by table, the day before which no rows are taken any more."""

    head: Commit | None = None
    length: int = 0
    days: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    retired: dict[str, str] = field(default_factory=dict)

    def after(self, commit: Commit) -> Self:
        """Add a commit. A checkpoint stands for all before it."""
        if commit.checkpoint:
            self.length, self.days = 0, {}
        self.head, self.length = commit, self.length + 1
        self.retired.update(commit.retired)
        for table, day, generation in commit.entries:
            days = self.days.setdefault(table, {})
            if day == NO_DAY:
                days.setdefault(day, []).append(generation)
            elif generation:
                days[day] = [generation]
            else:
                days.pop(day, None)
        return self

    def entries(self) -> list[tuple[str, str, str]]:
        """Return all that is seen, as one commit says it."""
        return [
            (table, day, generation)
            for table, days in sorted(self.days.items())
            for day, generations in sorted(days.items())
            for generation in generations
        ]


def chain(commits: Iterable[Commit], until_ms: int | None = None) -> list[Commit]:
    """Return the commits that count, oldest first: the head, and its ancestors up to a checkpoint.
    `until_ms`: as if younger ones were not there; none if the ancestors of then are gone.
    Raises `ConfigurationError` where an ancestor is missing."""
    known = {it.generation: it for it in commits}
    if not known:
        return []
    highest = max(it.number for it in known.values())
    at = min((it for it in known.values() if it.number == highest), key=lambda it: it.id)
    while until_ms is not None and at.at_ms > until_ms:
        if at.parent not in known:
            return []
        at = known[at.parent]
    found = [at]
    while not at.checkpoint and at.parent:
        if at.parent not in known:
            raise ConfigurationError(
                f"commit {at.parent} is missing, which {at.generation} follows; "
                "restore the folder `commits`, or begin a new folder"
            )
        at = known[at.parent]
        found.append(at)
    return found[::-1]


def needed(commits: Iterable[Commit], horizon_ms: int) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the commits, and the generations of tables, that anybody may read who began after the
    horizon, in milliseconds since 1970: what was seen then, and all that came since."""
    everything = list(commits)
    then = chain(everything, horizon_ms)
    since = [it for it in everything if it.at_ms > horizon_ms]
    kept = {it.generation for it in (*chain(everything), *then, *since)}
    seen = State()
    for commit in then:
        seen.after(commit)
    entries = [*seen.entries(), *(entry for it in since for entry in it.entries)]
    return kept, {(table, generation) for table, _, generation in entries}


class Written(NamedTuple):
    """A folder below that of the tables: `data/TABLE/GENERATION`, or `commits/GENERATION`.
    `last_ms`: when the last of its files was written, in milliseconds since 1970. `size`: of all,
    in bytes."""

    folder: str
    last_ms: int
    size: int

    @property
    def generation(self) -> str:
        return self.folder.rpartition("/")[2]


_FOLDERS = "data/*/*", "commits/*"
_FOLDER = r".*/((?:data/[^/]+|commits)/\d{8}-[0-9a-f]{12})/"

_TORN = "_temporary/*/{task_*,_temporary/attempt_*}"
"""Below a folder: where Spark writes before it shows files. A job that is killed leaves them there,
and Spark lists them only if they are named."""


class Lake:
    """The tables in a folder."""

    def __init__(self, spark: SparkSession, base: str) -> None:
        self.spark = spark
        self.base = base.rstrip("/")

    def state(self, until_ms: int | None = None) -> State:
        """Return what is committed now; or what of it was committed by then, in milliseconds since
        1970. Raises `ConfigurationError` if it cannot be read."""
        state = State()
        for commit in chain(self.commits(), until_ms):
            state.after(commit)
        return state

    def read(
        self, table: str, days: Iterable[str] | None = None, *, state: State | None = None
    ) -> DataFrame:
        """Return a table, or some days of it. `state`: an earlier view, which stays as it was."""
        found = (state or self.state()).days.get(table, {})
        chosen = found if days is None else {day: found[day] for day in set(days) & set(found)}
        paths = [
            self._data(table, generation, day)
            for day, generations in sorted(chosen.items())
            for generation in generations
        ]
        if not paths:
            return given(self.spark, [], TABLES[table])
        return self.spark.read.schema(TABLES[table]).parquet(*paths)

    def change(self, job: str, at_ms: int, state: State | None = None) -> Change:
        """Begin a change. `state`: what it is made from, now by default."""
        return Change(self, job, at_ms, state or self.state())

    def written(self) -> list[Written]:
        """Return the folders of all generations, and of commits, at least those that were never
        shown. Where only Spark comes to them, it sees no folder that has nothing yet."""
        local = self._local()
        if local.is_dir():
            return [it for place in _FOLDERS for it in _written_here(local, place)]
        places = "data", *(f"{it}/{_TORN}" for it in _FOLDERS)
        return [it for place in places for it in self._files_in(place)]

    def _local(self, folder: str = "") -> Path:
        """Return the place of a folder if it is on this machine."""
        return Path(f"{self.base}/{folder}".removeprefix("file://"))

    def _files_in(self, place: str) -> list[Written]:
        reader = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        last = F.max(F.unix_millis("modificationTime")).alias("last_ms")
        try:  # a Connect server looks for the place when rows are asked for
            files = reader.load(f"{self.base}/{place}")
            named = files.groupBy(F.regexp_extract("path", _FOLDER, 1).alias("folder"))
            sums = named.agg(last, F.sum("length").alias("size"))
            return [Written(*row) for row in sums.where("folder != ''").collect()]
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return []
            raise

    def remove(self, folder: str) -> None:
        """Remove a folder below that of the tables. Where only Spark comes to it, its files are
        replaced by an empty one: Spark can remove nothing else."""
        local = self._local(folder)
        if local.is_dir():
            with suppress(FileNotFoundError):  # another process removes it
                shutil.rmtree(local)
            return
        nothing = given(self.spark, [], struct("value string"))
        nothing.write.mode("overwrite").text(f"{self.base}/{folder}")

    def _data(self, table: str, generation: str, day: str = NO_DAY) -> str:
        folder = f"{self.base}/data/{table}/{generation}"
        return folder if day == NO_DAY else f"{folder}/dt={day}"

    def commits(self) -> Iterator[Commit]:
        """Yield all commits that there are, also those that do not count."""
        reader = self.spark.read.schema(_COMMIT + _ENTRIES + _RETIRED)
        # Those that are removed meanwhile are behind a checkpoint.
        reader = reader.options(recursiveFileLookup=True, ignoreMissingFiles=True)
        try:
            rows = reader.json(f"{self.base}/commits").collect()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return
            raise
        for row in rows:
            if row.number is None or row.id is None:
                raise ConfigurationError(f"{self.base}/commits: a file there is no commit")
            entries = tuple((it.table, it.day, it.generation) for it in row.entries)
            retired = tuple(sorted((row.retired or {}).items()))
            yield Commit(
                *(row.number, row.id, row.parent, row.job, row.at_ms, row.checkpoint),
                *(entries, retired),
            )


def _written_here(base: Path, place: str) -> Iterator[Written]:
    for folder in base.glob(place):
        if not re.fullmatch(_FOLDER, f"{folder}/"):
            continue
        with suppress(FileNotFoundError):  # another process removes it
            found = [it.stat() for it in (folder, *folder.rglob("*"))]
            last_ms = max(it.st_mtime_ns for it in found) // 1_000_000
            size = sum(it.st_size for it in found if S_ISREG(it.st_mode))
            yield Written(folder.relative_to(base).as_posix(), last_ms, size)


class Change:
    """Days that a job replaces. Nobody sees them before `commit`."""

    def __init__(self, lake: Lake, job: str, at_ms: int, state: State) -> None:
        self._lake = lake
        self._job = job
        self._at_ms = at_ms
        self._state = state
        self._entries: list[tuple[str, str, str]] = []
        self._whole: set[str] = set()  # tables whose former rows are gone
        self._retired: dict[str, str] = {}
        self._id = secrets.token_hex(6)
        self._number = 1 if state.head is None else state.head.number + 1

    @property
    def generation(self) -> str:
        return f"{self._number:08d}-{self._id}"

    def replace(self, table: str, rows: DataFrame, days: Iterable[str]) -> int:
        """Write these days of a table: they are gone where there are no rows. The rows of a day may
        be many: they are divided into files of a bounded size. Return how many rows there are."""
        columns = TABLES[table].fieldNames()
        placed = rows.select(*columns).withColumn("dt", F.col("day"))
        # Adaptive execution splits what is large, and joins what is small.
        placed = placed.hint("rebalance", F.col("dt"))
        folder = self._lake._data(table, self.generation)
        placed.write.partitionBy("dt").parquet(folder)
        written = self._written(folder)
        self._entries += [(table, day, self.generation * (day in written)) for day in set(days)]
        return sum(written.values())

    def retire(self, table: str, days: Iterable[str], before: str) -> None:
        """Have these days of a table gone for good, and refuse rows of days before `before`."""
        self._entries += [(table, day, "") for day in days]
        self._retired[table] = max(before, self._state.retired.get(table, before))

    def rewrite(self, table: str, rows: DataFrame) -> None:
        """Write a table that has no days, in place of all that it had."""
        self.append(table, rows)
        self._whole.add(table)

    def append(self, table: str, rows: DataFrame) -> None:
        """Add rows to a table that has no days."""
        folder = self._lake._data(table, self.generation)
        rows.select(*TABLES[table].fieldNames()).coalesce(1).write.parquet(folder)
        self._entries.append((table, NO_DAY, self.generation))

    def commit(self) -> None:
        """Make the change seen."""
        parent = self._state.head
        commit = self._commit("" if parent is None else parent.generation, self._entries)
        if self._whole or self._state.length + 1 >= CHECKPOINT:
            for table in self._whole:
                self._state.days.pop(table, None)
            everything = self._state.after(commit).entries()
            self._retired = self._state.retired
            commit = self._commit(commit.parent, everything, checkpoint=True)
        line = {"value": json.dumps(_row(commit))}
        rows = given(self._lake.spark, [line], struct("value string"))
        rows.coalesce(1).write.text(f"{self._lake.base}/commits/{self.generation}")

    def _commit(
        self, parent: str, entries: Iterable[tuple[str, str, str]], *, checkpoint: bool = False
    ) -> Commit:
        retired = tuple(sorted(self._retired.items()))
        return Commit(
            *(self._number, self._id, parent, self._job, self._at_ms, checkpoint),
            *(tuple(entries), retired),
        )

    def _written(self, folder: str) -> dict[str, int]:
        """Return the number of rows by day."""
        rows = self._lake.spark.read.schema("dt string").parquet(folder).groupBy("dt").count()
        return {str(day): number for day, number in rows.collect()}


def _row(commit: Commit) -> Mapping[str, object]:
    entries = [
        {"table": table, "day": day, "generation": generation}
        for table, day, generation in sorted(commit.entries)
    ]
    return {
        "number": commit.number,
        "id": commit.id,
        "parent": commit.parent,
        "job": commit.job,
        "at_ms": commit.at_ms,
        "checkpoint": commit.checkpoint,
        "entries": entries,
        "retired": dict(commit.retired),
    }
