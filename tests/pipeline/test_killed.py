"""A job that is killed at any point leaves the tables as they were, and the next run makes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from tests.pipeline.samples import NOW, Folder, ms, rows, used

PATIENCE = 120.0
"""Seconds for a job to come to a point: starting Spark takes ten on a busy machine."""

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
    _killed(tables, records, POINTS[point])
    killed = Lake(lake.spark, str(tables))
    seen = rows(killed.read("usage"))
    ingest(lake, records.url, "usage", ms(NOW))
    whole = rows(lake.read("usage"))
    assert seen in ([], whole)
    ingest(killed, records.url, "usage", ms(NOW))
    assert rows(killed.read("usage")) == whole
    assert len(whole) == 300
    assert rows(killed.read("files"), "path") == rows(lake.read("files"), "path")


def _killed(tables: Path, records: Folder, there: str) -> None:
    """Run a job up to a point."""
    command = [sys.executable, "-m", "gateway", "pipeline", "ingest", str(tables), records.url]
    job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + PATIENCE
        while not list(tables.glob(there)):
            assert job.poll() is None, f"the job ended: {job.stderr and job.stderr.read()!r}"
            assert time.monotonic() < until, f"nothing is at {there}"
            time.sleep(0.002)
    finally:
        os.killpg(job.pid, signal.SIGKILL)  # with the process of Spark, which is its child
        job.communicate()
