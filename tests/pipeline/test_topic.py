"""Records in a topic of a real broker: the same tables as from their files, whatever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.usage.client import Client, Service
from gateway.usage.records import Usage
from gateway.usage.sending import Row
from tests.pipeline.samples import NOW, Folder, ms, rows, used
from tests.real.brokers.standalone import Standalone
from tests.real.clients import fresh_topic, wait_until

pytestmark = [pytest.mark.real, pytest.mark.spark, pytest.mark.gateway_only, pytest.mark.long]

PARTITIONS, COUNT = 2, 3000
HOSTILE = [b"{half", b'{"v":9}', b"\xff"]


@pytest.fixture
def sent(pulsar: Standalone, records: Folder) -> str:
    """Send what files hold, and messages that are no records; return the URL of the topic."""
    topic = fresh_topic("usage")
    pulsar.admin.create_partitioned_topic(topic, PARTITIONS)
    all = [used(seq, f"2026-11-2{seq % 3}T01:00", tenant=f"t{seq % 7}") for seq in range(1, COUNT)]
    records.add(all)
    send(pulsar, topic, all)
    client = Client(Service(pulsar.service_url), lambda: ("none", b""))
    client.send(topic, Usage, "hostile", [Row(at, "k", 1, it) for at, it in enumerate(HOSTILE, 1)])
    client.close()
    return f"{pulsar.service_url}/{topic.removeprefix('persistent://')}"


def send(pulsar: Standalone, topic: str, all: list[Usage]) -> None:
    client = Client(Service(pulsar.service_url), lambda: ("none", b""))
    lines = [Row(it.seq, it.tenant or "", 1, msgspec.json.encode(it)) for it in all]
    client.send(topic, Usage, "edge-b", lines)
    client.close()


def backlog(pulsar: Standalone, url: str) -> int:
    """Return how many messages the subscription has not acknowledged."""
    topic = url.removeprefix(f"{pulsar.service_url}/")
    names = [f"persistent://{topic}-partition-{it}" for it in range(PARTITIONS)]
    stats = [pulsar.admin.stats(it)["subscriptions"] for it in names]
    return sum(it["gateway-pipeline"]["msgBacklog"] for it in stats if it)


def run(*words: str, until: Callable[[], bool] | None = None) -> str:
    """Run a job in a process, whole or up to a point; return what it said."""
    command = [sys.executable, "-m", "gateway", "pipeline", "ingest", *words]
    job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        while until is not None and not until():
            assert job.poll() is None, f"the job ended: {job.stderr and job.stderr.read()}"
            time.sleep(0.002)
        if until is not None:
            os.killpg(job.pid, signal.SIGKILL)  # with the process of Spark, which is its child
        _, said = job.communicate(timeout=120)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    assert until is not None or job.returncode == 0, said
    return said


def tables(lake: Lake) -> dict[str, list[Any]]:
    quarantined = rows(lake.read("quarantine"), "reason")
    return {"usage": rows(lake.read("usage")), "quarantine": quarantined}


def test_a_topic_gives_the_tables_of_the_files(
    pulsar: Standalone, sent: str, lake: Lake, records: Folder, tmp_path: Path
) -> None:
    ingest(lake, records.url, "usage", ms(NOW))
    base = str(tmp_path / "topic")
    said = run(base, sent)
    assert f"{COUNT - 1 + len(HOSTILE)} messages" in said
    assert f"{COUNT - 1} records of 3 days; {len(HOSTILE)} lines put aside" in said
    topic = Lake(lake.spark, base)
    assert tables(topic)["usage"] == tables(lake)["usage"]
    assert len(tables(topic)["quarantine"]) == len(HOSTILE)
    assert sum(it.records for it in topic.read("files").collect()) == COUNT - 1
    wait_until(lambda: backlog(pulsar, sent) == 0)
    assert "nothing new" in run(base, sent)
    send(pulsar, f"persistent://{sent.removeprefix(f'{pulsar.service_url}/')}", [used(COUNT)])
    assert "1 new files, 1 records of 1 days" in run(base, sent)


POINTS = {
    "while a batch is written": "inbox/usage/dt=*/*/_temporary",
    "before all batches are acknowledged": "inbox/usage/dt=*/*/part-*",
    "while tables are written": "data/usage/*",
}
"""What is there at each point, below the folder of tables."""


@pytest.mark.parametrize("point", POINTS)
def test_a_job_that_is_killed_loses_nothing(
    sent: str, lake: Lake, records: Folder, tmp_path: Path, point: str
) -> None:
    ingest(lake, records.url, "usage", ms(NOW))
    base = tmp_path / "killed"
    run(str(base), sent, until=lambda: any(base.glob(POINTS[point])))
    killed = Lake(lake.spark, str(base))
    run(str(base), sent)
    assert rows(killed.read("usage")) == rows(lake.read("usage"))


def test_brokers_that_do_not_answer_and_wrong_names_are_said(
    pulsar: Standalone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for url, text in (
        (f"{pulsar.service_url}/only-a-tenant", "is no topic"),
        ("pulsar://127.0.0.1:1/ops/usage/records", "cannot be read"),
        (f"{pulsar.service_url}/no-tenant/usage/records", "cannot be read"),
    ):
        with pytest.raises(AssertionError, match=text):
            run(str(tmp_path / "tables"), url)
    assert "Traceback" not in capsys.readouterr().err
