"""The commands of docs/pipeline.md, as they stand there, one after the other."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway.pipeline.command import main
from tests.docs.test_commands import BLOCKS
from tests.pipeline import several
from tests.pipeline.samples import Folder, happened, used

PATIENCE = 600

OF_CLUSTERS = (" snapshot ", " store ", " subscriptions ", "://")
"""Commands that need a cluster, or what it stores."""

PAGE = "docs/pipeline.md"

OURS = "gateway pipeline "


def shown() -> list[str]:
    """Return the commands of the page that need no cluster."""
    found = [it for block in BLOCKS if block.page == PAGE for it in block.commands]
    return [it for it in found if not any(name in it for name in OF_CLUSTERS)]


def test_the_commands_of_the_page_make_bills_and_limits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = Folder(tmp_path / "usage")
    days = [f"{datetime.now(UTC) - timedelta(days=it):%Y-%m-%dT01:00}" for it in range(4, 0, -1)]
    times = ["2026-10-05T01:00", *days]
    both = {"sent_msgs": 50_000, "msgs": 50_000, "bytes_wire": 10**9, "sent_bytes": 10**9}
    records.add([happened(1, days[0])], closed=days[0])
    records.add([used(seq, time, **both) for seq, time in enumerate(times, 1)])
    (tmp_path / "prices.yaml").write_text("version: 1\ncurrency: EUR\nprices: {gb_in: 2}\n")
    commands = shown()
    assert len(commands) == 12
    for command in commands:
        if command.startswith(OURS):
            _run_job(spark, command)
        else:
            _run(command, tmp_path)
    invoice = tmp_path / "invoices" / "2026-10" / "invoice-acme.html"
    assert re.search(r"2\.00 EUR", invoice.read_text())
    assert "mode: shadow" in (tmp_path / "rules" / "recommended" / "tenants.yaml").read_text()
    assert "mode: enforce" in (tmp_path / "rules" / "promoted.yaml").read_text()


def _run_job(spark: SparkSession, command: str) -> None:
    """Run a job in the session of all tests: eleven that start Spark take minutes."""
    options = several.options_of(shlex.split(command.removeprefix(OURS)))
    for name in [it for it in ("tables", "source", "watch") if getattr(options, it, None)]:
        # Spark's process stays in the folder where it was started.
        setattr(options, name, str(Path(getattr(options, name)).absolute()))
    assert options.job(spark, options) == 0, command


def _run(command: str, folder: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("slot", ["7m", "10ms", "0s", "2h", "five"])
def test_slots_of_neighbours_divide_an_hour(slot: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["neighbours", "tables", "--slot", slot])
    assert f"argument --slot: {slot}: " in capsys.readouterr().err


def test_a_job_without_records_says_what_is_wrong(tmp_path: Path, spark: SparkSession) -> None:
    del spark
    command = f"gateway pipeline ingest {tmp_path}/tables {tmp_path}/nothing"
    with pytest.raises(AssertionError, match="there is no such folder, or no right to see it"):
        _run(command, tmp_path)
    assert not list(tmp_path.glob("tables/data/*"))
