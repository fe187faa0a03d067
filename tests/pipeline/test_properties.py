"""The same records give the same tables, whatever the files are like, and however often jobs run.

Each case writes the same records into files in its own way, by a seed: lines and files shuffled,
split and joined; lines and whole files twice; files torn, and then whole, under the same name or
another; in one run or in several. All tables must be those of one file that has each record once.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cramjam
import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.rollup import rollup
from gateway.telemetry.latency import BOUNDS
from gateway.usage.records import Event, Usage
from tests.pipeline.samples import NOW, Folder, happened, line, ms, rows, used

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SEEDS = range(6)

TABLES = (
    *("usage", "events", "hourly", "daily", "latency_hourly", "latency_daily", "completeness"),
)

RECORDS = 150

Tables = dict[str, list[tuple[Any, ...]]]


def usage_of(chance: random.Random) -> Iterator[Usage]:
    """Yield what two gateways with two processes each write in three days, with gaps."""
    for gw in ("edge-1", "edge-2"):
        for boot in ("a", "b"):
            for seq in sorted(chance.sample(range(1, RECORDS), RECORDS // 4)):
                time = f"2026-11-{20 + seq * 3 // RECORDS}T{chance.randrange(24):02}:{seq % 60:02}"
                fields: dict[str, Any] = {"gw": gw, "boot": boot, "tenant": chance.choice("xyz")}
                if seq % 5 == 0:
                    waits = [chance.randrange(9) for _ in (*BOUNDS, 0)]
                    fields |= {"op": "latency", "lat_bucket": waits, "lat_count": sum(waits)}
                else:
                    fields |= {"msgs": chance.randrange(10**12), "bytes_wire": chance.randrange(99)}
                yield used(seq, time, **fields)


def events_of(chance: random.Random) -> Iterator[Event]:
    for seq in range(1, 30):
        yield happened(seq, f"2026-11-2{seq % 3}T05:00", right=chance.choice(["produce", None]))


ALL: list[Usage | Event] = [*usage_of(random.Random(1)), *events_of(random.Random(2))]


@dataclass(frozen=True, slots=True)
class File:
    """A file that a case writes. `is_torn`: only two thirds are written."""

    name: str
    data: bytes
    is_torn: bool = False

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        kind = self.name.rpartition(".")[2]
        data = self.data
        if kind == "gz":
            data = gzip.compress(data, mtime=0)
        elif kind == "zst":
            data = bytes(cramjam.zstd.compress(data))
        (folder / self.name).write_bytes(data[: len(data) * 2 // 3] if self.is_torn else data)


def files_of(records: Sequence[Usage | Event], chance: random.Random) -> list[list[File]]:
    """Return the files of each run."""
    lines = [line(it) for it in records]
    lines += chance.choices(lines, k=len(lines) // 3)
    chance.shuffle(lines)
    cuts = sorted(chance.choices(range(len(lines)), k=chance.randrange(1, 6)))
    parts = [lines[a:b] for a, b in zip([0, *cuts], [*cuts, len(lines)], strict=True) if a < b]
    runs: list[list[File]] = [[] for _ in range(chance.randrange(1, 4))]
    for at, part in enumerate(parts):
        kind = chance.choice(["jsonl", "jsonl.gz", "jsonl.zst"])
        whole = File(f"edge-{at}.{kind}", b"".join(part))
        first, last = sorted(chance.choices(range(len(runs)), k=2))
        fate = chance.choice(["once", "copied", "torn", "torn and replaced"])
        if fate == "copied":
            runs[first].append(File(f"copy-{at}.{kind}", whole.data))
        elif fate == "torn":
            runs[first].append(File(f"torn-{at}.{kind}", whole.data, is_torn=True))
        elif fate == "torn and replaced" and first < last:
            runs[first].append(File(whole.name, whole.data, is_torn=True))
        runs[last].append(whole)
    for run in runs:
        chance.shuffle(run)
    return runs


def tables(lake: Lake) -> Tables:
    state = lake.state()
    return {name: rows(lake.read(name, state=state)) for name in TABLES}


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the tables of one file for each kind of records."""
    base = tmp_path_factory.mktemp("expected")
    folder, lake = Folder(base / "records"), Lake(spark, str(base / "tables"))
    for kind, stream in ((Usage, "usage"), (Event, "events")):
        folder.add([it for it in ALL if isinstance(it, kind)])
        ingest(lake, folder.url, stream, ms(NOW))
    rollup(lake, ms(NOW))
    found = tables(lake)
    assert all(found.values())
    assert sum(map(len, (found["usage"], found["events"]))) == len(ALL)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_records_give_the_same_tables(
    lake: Lake, tmp_path: Path, expected: Tables, seed: int
) -> None:
    chance = random.Random(zlib.crc32(b"case %d" % seed))
    usage = files_of([it for it in ALL if isinstance(it, Usage)], chance)
    events = files_of([it for it in ALL if isinstance(it, Event)], chance)
    source = tmp_path / "records"
    for at in range(max(len(usage), len(events))):
        for stream, runs in (("usage", usage), ("events", events)):
            for file in runs[at] if at < len(runs) else ():
                file.write(source / stream / "dt=2026-11-20")
            if (source / stream).is_dir():
                ingest(lake, str(source), stream, ms(NOW))
        if chance.random() < 0.5:
            rollup(lake, ms(NOW))
    rollup(lake, ms(NOW))
    found = tables(lake)
    for name in TABLES:
        assert found[name] == expected[name], name
    for stream in ("usage", "events"):
        assert ingest(lake, str(source), stream, ms(NOW)) == []
    assert rollup(lake, ms(NOW)) == []
