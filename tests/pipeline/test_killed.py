"""A job that is killed at any point leaves the tables as they were, and the next run makes them."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.keeping import compact, retain
from gateway.pipeline.lake import Lake
from gateway.pipeline.rollup import rollup
from tests.pipeline import processes
from tests.pipeline.samples import NOW, Folder, ms, rows, used

POINTS = {
    "while days are written": "data/usage/*",
    "once the files are noted": "data/files/*/_SUCCESS",
    "while it commits": "commits/*",
}
"""What is there at each point, below the folder of tables."""


@pytest.mark.parametrize("point", POINTS)
def test_the_tables_are_the_same_after_a_kill(
    lake: Lake, records: Folder, tmp_path: Path, point: str
) -> None:
    for first in range(1, 301, 100):
        records.add([used(seq, f"2026-11-2{seq % 3}T01:00") for seq in range(first, first + 100)])
    tables = tmp_path / "killed"
    words = ("ingest", str(tables), records.url)
    processes.run(*words, kill=processes.everything, at=lambda: any(tables.glob(POINTS[point])))
    killed = Lake(lake.spark, str(tables))
    seen = rows(killed.read("usage"))
    ingest(lake, records.url, "usage", ms(NOW))
    whole = rows(lake.read("usage"))
    assert seen in ([], whole)
    ingest(killed, records.url, "usage", ms(NOW))
    assert rows(killed.read("usage")) == whole
    assert len(whole) == 300
    assert rows(killed.read("files"), "path") == rows(lake.read("files"), "path")


OF_KEEPING = {
    "while lists are joined": ("compact", "data/files/00000005-*"),
    "while files go": ("compact", "commits/00000005-*/_SUCCESS"),
    "while days go": ("retain --keep records=2", "commits/00000005-*"),
}
"""A job and what is there at each point, of tables that have four commits."""


@pytest.mark.parametrize("point", OF_KEEPING)
def test_what_is_kept_is_the_same_after_a_kill(lake: Lake, records: Folder, point: str) -> None:
    words, place = OF_KEEPING[point]
    job, *options = words.split()
    for seq, day in enumerate(("20", "21", "21"), 1):
        records.add([used(seq, f"2026-11-{day}T01:00")], closed=f"2026-11-21T0{seq}:00")
        ingest(lake, records.url, "usage", ms("2026-11-21T04:00"))
    rollup(lake, ms("2026-11-21T04:00"))
    tables = Path(lake.base)
    for path in tables.rglob("*"):
        os.utime(path, (0, 0))  # so that all is old enough to go
    usage, sums = (rows(lake.read(table)) for table in ("usage", "daily"))
    processes.run(
        *(job, lake.base, *options),
        kill=processes.everything,
        at=lambda: any(tables.glob(place)),
    )
    assert rows(lake.read("usage")) in ([usage] if job == "compact" else [usage, []])
    for _ in range(2):
        assert rows(lake.read("daily")) == sums
        assert len(rows(lake.read("files"), "path")) == 3
        if job == "retain":
            retain(lake, {"records": 2}, date(2026, 11, 25), ms(NOW))
        compact(lake, ms(NOW))
    assert rows(lake.read("usage")) == ([] if job == "retain" else usage)
    assert ingest(lake, records.url, "usage", ms(NOW)) == []
