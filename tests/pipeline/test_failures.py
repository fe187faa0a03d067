"""A job that fails says why in one line, leaves the tables as they were, and goes on when it can.

Each job is a process with a Spark of its own.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.pipeline.lake import Lake
from tests.pipeline import processes
from tests.pipeline.processes import Done
from tests.pipeline.samples import Folder, rows, used

pytestmark = pytest.mark.usefixtures("spark")  # so that it skips without Java

SMALL, LARGE = "400k", "64m"
COUNT = 8000

ORDINARY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Begins a program for which the rights of files count, whoever runs it."""

HUNGRY = """
import argparse, sys
from gateway.pipeline import command

def job(spark, options):
    from pyspark.sql import functions as F
    long = F.array_repeat(F.repeat(F.lit("x"), 100_000_000), 3)
    spark.range(0, 4, 1, 2).select(long.alias("a")).orderBy("a").collect()
    return 0

parser = argparse.ArgumentParser()
command._add_session(parser)
options = parser.parse_args(["--memory", "512m"])
options.job, options.job_name = job, "hungry"
sys.exit(command.run(options))
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a small disk. Making one takes rights that not every machine gives."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "none", str(place)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no small disk can be made here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def add_many(records: Folder) -> None:
    """Add a file that does not fit on the small disk."""
    noise = random.Random(1)
    numbers = range(2, COUNT + 1)
    records.add([used(seq, principal=f"{noise.getrandbits(512):x}") for seq in numbers])


def assert_told(done: Done, *texts: str, status: int = 1) -> None:
    assert done.status == status, done.said
    assert not done.has_trace, done.said
    for text in texts:
        assert text in done.last


def seqs(lake: Lake) -> list[int]:
    return sorted(seq for (seq,) in rows(lake.read("usage"), "seq"))


def test_a_full_disk_is_named_and_the_job_goes_on_when_there_is_space(
    lake: Lake, records: Folder, small: Path
) -> None:
    words = ("ingest", str(small / "tables"), records.url)
    records.add([used(1)])
    assert processes.run(*words).status == 0
    add_many(records)
    assert_told(processes.run(*words), f"{small}/tables/data", "the disk is full; make space")
    full = Lake(lake.spark, str(small / "tables"))
    assert seqs(full) == [1]
    subprocess.run(["mount", "-o", f"remount,size={LARGE}", str(small)], check=True)
    done = processes.run(*words)
    assert f": {COUNT - 1:,} lines read; {COUNT - 1:,} new records" in done.last
    assert seqs(full) == list(range(1, COUNT + 1))


def test_a_full_disk_of_spark_itself_is_named(records: Folder, tmp_path: Path, small: Path) -> None:
    add_many(records)
    done = processes.run(
        *("ingest", str(tmp_path / "tables"), records.url),
        environment={"SPARK_LOCAL_DIRS": str(small)},
    )
    assert_told(done, f"make space in {small}", "SPARK_LOCAL_DIRS")


def ordinary() -> tuple[str, ...]:
    """Return what begins a program for which the rights of files count."""
    if os.geteuid():
        return processes.PROGRAM
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here, without which root may read everything")
    return (*ORDINARY, *processes.PROGRAM)


def test_a_file_that_may_not_be_read_is_named_and_taken_when_it_may(
    lake: Lake, records: Folder, tmp_path: Path
) -> None:
    records.add([used(1)])
    closed = records.add([used(2)])
    closed.chmod(0)
    words = ("ingest", str(tmp_path / "others"), records.url)
    assert_told(processes.run(*words, program=ordinary()), f"{closed}: permission denied")
    closed.chmod(0o600)
    assert processes.run(*words, program=ordinary()).status == 0
    assert seqs(Lake(lake.spark, str(tmp_path / "others"))) == [1, 2]


def test_a_folder_that_may_not_be_seen_or_written_is_named(records: Folder, tmp_path: Path) -> None:
    day = records.add([used(1)]).parent.parent
    day.chmod(0)
    words = ("ingest", str(tmp_path / "tables"), records.url)
    assert_told(processes.run(*words, program=ordinary()), f"{day}: permission denied")
    day.chmod(0o700)
    (tmp_path / "fixed").mkdir(mode=0o500)
    words = ("ingest", str(tmp_path / "fixed" / "tables"), records.url)
    told = processes.run(*words, program=ordinary())
    assert_told(told, f"{tmp_path}/fixed/tables/data/usage/", "cannot be made")


@pytest.mark.parametrize(
    ("tables", "source", "text"),
    [
        ("file/tables", "records", "file: is a file; name a folder"),
        ("tables", "nosuch://a/b", "nosuch:// is no filesystem that Spark knows"),
        ("tables", "s3a://a/b", "S3AFileSystem"),
    ],
)
def test_a_place_that_cannot_be_is_named(
    records: Folder, tmp_path: Path, tables: str, source: str, text: str
) -> None:
    records.add([used(1)])
    (tmp_path / "file").write_text("")
    source = source if "://" in source else records.url
    assert_told(processes.run("ingest", str(tmp_path / tables), source), text)


def test_too_little_memory_is_said() -> None:
    told = processes.run(program=(sys.executable, "-c", HUNGRY))
    assert_told(told, "gateway pipeline hungry: Spark has run out of memory; more: --memory")


def test_a_spark_that_is_killed_is_said(lake: Lake, records: Folder, tmp_path: Path) -> None:
    records.add([used(1)])
    tables = tmp_path / "killed"
    words = ("ingest", str(tables), records.url)
    told = processes.run(
        *words, kill=processes.spark_alone, at=lambda: any(tables.glob("data/usage/*"))
    )
    assert_told(told, "Spark's process was killed")
    assert processes.run(*words).status == 0
    assert seqs(Lake(lake.spark, str(tables))) == [1]


def test_a_trace_is_shown_on_demand(records: Folder, tmp_path: Path) -> None:
    records.add([used(1)])
    (tmp_path / "file").write_text("")
    told = processes.run("ingest", str(tmp_path / "file" / "tables"), records.url, "--trace")
    assert told.has_trace
    assert "ParentNotDirectoryException" in told.said
