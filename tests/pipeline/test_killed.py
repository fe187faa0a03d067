"""A job that is killed at any point leaves the tables as they were, and the next run makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from tests.pipeline import processes
from tests.pipeline.samples import NOW, Folder, ms, rows, used

POINTS = {
    "while days are written": "data/usage/*",
    "once the files are noted": "data/files/*/_SUCCESS",
    "while it commits": "commits/*",
}
"""What is there at each point, below the folder of tables."""


@pytest.mark.long
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
