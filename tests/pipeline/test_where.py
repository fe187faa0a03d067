"""Jobs give the same tables and invoices wherever they run: in this process, by `spark-submit` on a
cluster, on a Spark Connect server, and on files in S3."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gateway.errors import BAD_CONFIGURATION
from gateway.pipeline import command
from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.rollup import rollup
from gateway.pipeline.schema import TABLES, WATCHED
from gateway.pipeline.watching import lines
from gateway.pipeline.watching.run import watch
from tests.pipeline import several
from tests.pipeline.alerting import DAYS, THEN, Gateway, T, know
from tests.pipeline.alerting import NOW as THEN_MS
from tests.pipeline.samples import NOW, Folder, Month, happened, ms, used
from tests.pipeline.servers import (
    BUCKET,
    HOST,
    bucket,
    cluster,
    connect_server,
    environment,
    run,
    s3_server,
    s3a_jars,
)
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_ports
from tests.real.fixtures import or_skip

PATIENCE_S = 600.0
"""For a job: a new Spark on a busy machine takes a minute."""

CARD = """
version: 1
currency: EUR
prices: {gb_in: 1, gb_out: {price: 2, tiers: [{above: 10, price: 0.5}]}, connection_hour: 0.5}
"""

NO_PYTHON = "/nonexistent/python"


def jobs(month: Month, folder: Path) -> list[list[str]]:
    """Return the command lines of jobs, each of which needs what those before it made."""
    records, tables = str(Path(month.lake.base).with_name("records")), str(folder / "tables")
    prices = folder / "prices.yaml"
    prices.write_text(CARD)
    bill = ["--prices", str(prices), "--month", "2026-11", "--out", str(folder / "invoices")]
    return [
        ["ingest", tables, records],
        ["rollup", tables],
        ["neighbours", tables],
        ["abuse", tables],
        ["chargeback", tables, *bill],
    ]


Made = tuple[list[str], Mapping[str, bytes]]
"""The rows of all tables, in order, and the files of invoices."""


def made(spark: SparkSession, folder: Path) -> Made:
    """Return what jobs made."""
    invoices = (folder / "invoices").rglob("*.*")
    return rows_of(spark, folder / "tables"), {it.name: it.read_bytes() for it in invoices}


def rows_of(spark: SparkSession, tables: Path) -> list[str]:
    """Return the rows of all tables, in order: JSON shows each bit of a number."""
    lake = Lake(spark, str(tables))
    state = lake.state()
    lines = [
        lake.read(name, state=state).select(F.lit(name), F.to_json(F.struct("*")).alias("line"))
        for name in TABLES
        if state.days.get(name)
    ]
    whole = lines[0]
    for it in lines[1:]:
        whole = whole.union(it)
    return sorted(f"{row[0]} {row[1]}" for row in whole.collect())


@pytest.fixture(scope="module")
def here(spark: SparkSession, month: Month, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return what jobs make in this process."""
    folder = tmp_path_factory.mktemp("here")
    several.run(spark, jobs(month, folder))
    return made(spark, folder)


class Watched(NamedTuple):
    """A folder of records with an incident, tables that know what is usual and have not seen it,
    and the alerts that this process makes of it."""

    records: str
    tables: str
    alerts: str


@pytest.fixture
def watched(spark: SparkSession, tmp_path: Path) -> Watched:
    records, file = Folder(tmp_path / "watched"), tmp_path / "expected.jsonl"
    lake = Lake(spark, str(tmp_path / "seen"))
    know(lake)
    tables = shutil.copytree(lake.base, tmp_path / "unseen")
    gateway = Gateway(records)
    gateway.close(gateway.slot(6, odd=True), gateway.slot(7, odd=True))
    watch(lake, records.url, THEN_MS, T, DAYS, lambda it: lines.append(file, map(lines.line, it)))
    return Watched(records.url, str(tables), file.read_text())


def assert_same(found: Made, expected: Made) -> None:
    """Assert that two places made the same; say of few rows what differs."""
    assert sorted({*found[0]} ^ {*expected[0]})[:5] == []
    assert len(found[0]) == len(expected[0])
    assert found[1].keys() == expected[1].keys()
    assert [name for name, it in found[1].items() if it != expected[1][name]] == []


def test_jobs_make_something_of_each_kind(here: Made) -> None:
    """Without this the comparisons might compare nothing."""
    tables = {it.partition(" ")[0] for it in here[0]}
    assert tables == {*TABLES} - {*WATCHED} - {"stored", "stored_daily"}
    assert {it.partition("-")[0] for it in here[1]} == {"overview.html", "focus.csv", "invoice"}


def test_a_cluster_gives_the_same(
    spark: SparkSession, month: Month, here: Made, tmp_path: Path
) -> None:
    """Records come by `spark-submit` of the command, bills from a session that the command makes on
    the master itself."""
    of_driver = [f"--conf=spark.driver.{it}={HOST}" for it in ("host", "bindAddress")]
    settings = ["--conf=spark.ui.enabled=false", "--conf=spark.sql.shuffle.partitions=5"]
    settings += ["--conf=spark.executor.memory=512m", *of_driver]
    variables = {"PYSPARK_PYTHON": NO_PYTHON, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with cluster(tmp_path) as master:
        submit = ["spark-submit", "--master", master, *settings]
        gateway = [sys.executable, "-m", "gateway", "pipeline"]
        first, *rest, last = jobs(month, tmp_path)
        together = [str(several.__file__), json.dumps(rest)]
        for it in ([str(command.__file__), *first], together):
            run([*submit, *it], tmp_path, variables, PATIENCE_S)
        last += ["--master", master, *settings]
        run([*gateway, *last], tmp_path, variables, PATIENCE_S)
    executors = [len(list(tmp_path.glob(f"worker-{it}/app-*/*"))) for it in range(2)]
    assert executors == [3, 3]
    assert_same(made(spark, tmp_path), here)


@pytest.mark.skipif(
    not all(map(find_spec, ("grpc_status", "pandas", "pyarrow"))),
    reason="pyspark[connect] is not here",
)
def test_a_connect_server_gives_the_same(
    spark: SparkSession, month: Month, here: Made, watched: Watched, tmp_path: Path
) -> None:
    alerts = tmp_path / "alerts.jsonl"
    with connect_server(tmp_path) as url:
        for it in jobs(month, tmp_path):
            gateway = [sys.executable, "-m", "gateway", "pipeline", *it, "--remote", url]
            run(gateway, tmp_path, {}, PATIENCE_S)
        words = ["--watch", watched.records, "--out", str(alerts), "--remote", url]
        run([*THEN, "neighbours", watched.tables, *words], tmp_path, {}, PATIENCE_S)
    assert_same(made(spark, tmp_path), here)
    assert alerts.read_text() == watched.alerts


# -- S3 ----------------------------------------------------------------------------------------


OF_S3 = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@pytest.fixture
def s3a(say: Say) -> list[str]:
    """Return the settings of a session for S3, but for the server."""
    jars = or_skip(s3a_jars, say)
    return [
        f"--conf=spark.jars={','.join(map(str, jars))}",
        "--conf=spark.hadoop.fs.s3a.path.style.access=true",
        "--conf=spark.hadoop.fs.s3a.endpoint.region=us-east-1",
    ]


def test_tables_in_s3_are_the_same_though_a_job_was_killed(
    lake: Lake, records: Folder, s3a: list[str], say: Say, tmp_path: Path
) -> None:
    for first in range(1, 301, 100):
        records.add([used(seq, f"2026-11-2{seq % 3}T01:00") for seq in range(first, first + 100)])
    records.add([happened(1)])
    for stream in ("usage", "events"):
        ingest(lake, records.url, stream, ms(NOW))
    rollup(lake, ms(NOW))
    tables, source = f"s3a://{BUCKET}/tables", f"s3a://{BUCKET}/usage"
    with bucket(or_skip(s3_server, say), tmp_path) as at:
        at.put(records.path, "usage")
        settings = [*s3a, f"--conf=spark.hadoop.fs.s3a.endpoint={at.url}"]
        gateway = [sys.executable, "-m", "gateway", "pipeline"]
        job = [*gateway, "ingest", tables, source, *settings]
        _killed(job, tmp_path, OF_S3, lambda: at.keys("tables/data/usage/"))
        assert at.keys("tables/commits/") == []
        run(job, tmp_path, OF_S3, PATIENCE_S)
        run([*gateway, "rollup", tables, *settings], tmp_path, OF_S3, PATIENCE_S)
        at.get("tables", tmp_path / "copy")
    found = rows_of(lake.spark, tmp_path / "copy")
    assert [it.replace(source, f"file:{records.url}") for it in found] == rows_of(
        lake.spark, Path(lake.base)
    )


def test_alerts_on_records_in_s3_are_the_same(
    watched: Watched, s3a: list[str], say: Say, tmp_path: Path
) -> None:
    alerts = tmp_path / "alerts.jsonl"
    with bucket(or_skip(s3_server, say), tmp_path) as at:
        at.put(Path(watched.records), "watched")
        at.put(Path(watched.tables), "unseen")
        places = [f"s3a://{BUCKET}/unseen", "--watch", f"s3a://{BUCKET}/watched"]
        words = ["--out", str(alerts), *s3a, f"--conf=spark.hadoop.fs.s3a.endpoint={at.url}"]
        run([*THEN, "neighbours", *places, *words], tmp_path, OF_S3, PATIENCE_S)
        assert at.keys("unseen/watch/checkpoint/") != []
    assert alerts.read_text() == watched.alerts


def _killed(job: Sequence[str], folder: Path, variables: Mapping[str, str], there: object) -> None:
    """Run a job until something is there."""
    assert callable(there)
    process = subprocess.Popen(
        job, cwd=folder, env=environment(**variables), start_new_session=True, stderr=-1
    )
    try:
        until = time.monotonic() + PATIENCE_S
        while not there():
            assert process.poll() is None, f"it ended: {process.stderr and process.stderr.read()!r}"
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the process of Spark, which is its child
        process.communicate()


# -- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "kind"), [("--remote", "sc"), ("--master", "spark")], ids=["connect", "cluster"]
)
def test_nobody_at_the_address_is_an_error(
    option: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if option == "--master" and shutil.which("java") is None:
        pytest.skip("java is not here, which Spark needs")
    (port,) = free_ports(HOST, 1)
    url = f"{kind}://{HOST}:{port}"
    status = command.main(["rollup", "tables", option, f"{url}/;token=secret"])
    said = capsys.readouterr().err
    assert status == BAD_CONFIGURATION
    assert f"no Spark session on {url}: {HOST}:{port}: " in said
    assert "refused" in said
    assert "secret" not in said


@pytest.mark.parametrize("text", ["spark.x", "fs.s3a.secret.key=hidden", "=hidden"])
def test_a_setting_that_is_none_is_an_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["rollup", "tables", "--conf", text]) == BAD_CONFIGURATION
    said = capsys.readouterr().err
    assert "is no setting; spark.sql.shuffle.partitions=64, for example" in said
    assert "hidden" not in said
