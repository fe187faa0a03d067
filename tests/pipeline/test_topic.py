"""Records in a topic of a real broker: the same tables as from their files, whatever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.usage.client import Client, Service
from gateway.usage.records import Usage
from gateway.usage.sending import Row
from tests.pipeline import processes
from tests.pipeline.samples import NOW, Folder, ms, rows, used
from tests.real.brokers.standalone import Standalone
from tests.real.clients import fresh_topic, wait_until

pytestmark = [pytest.mark.real, pytest.mark.spark, pytest.mark.gateway_only]

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


def run(base: object, url: str) -> str:
    """Take a topic into tables; return what the job said."""
    done = processes.run("ingest", str(base), url)
    assert done.status == 0, done.said
    return done.said


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
    assert f"{COUNT - 1:,} new records, 0 doubled, {len(HOSTILE)} put aside" in said
    topic = Lake(lake.spark, base)
    assert tables(topic)["usage"] == tables(lake)["usage"]
    assert len(tables(topic)["quarantine"]) == len(HOSTILE)
    assert sum(it.records for it in topic.read("files").collect()) == COUNT - 1
    wait_until(lambda: backlog(pulsar, sent) == 0)
    assert "nothing new" in run(base, sent)
    send(pulsar, f"persistent://{sent.removeprefix(f'{pulsar.service_url}/')}", [used(COUNT)])
    assert "1 new files of 1 days: 1 lines read; 1 new records" in run(base, sent)


POINTS = {
    "while a batch is written": "inbox/usage/dt=*/*/_temporary",
    "before all batches are acknowledged": "inbox/usage/dt=*/*/part-*",
    "while tables are written": "data/usage/*",
}
"""What is there at each point, below the folder of tables."""


RUNS = 3
"""A broker on a busy machine may send nothing for so long that a run leaves the rest to the next
one."""


@pytest.mark.parametrize("point", POINTS)
def test_a_job_that_is_killed_loses_nothing(
    pulsar: Standalone, sent: str, lake: Lake, records: Folder, tmp_path: Path, point: str
) -> None:
    ingest(lake, records.url, "usage", ms(NOW))
    base = tmp_path / "killed"
    words = ("ingest", str(base), sent)
    processes.run(*words, kill=processes.everything, at=lambda: any(base.glob(POINTS[point])))
    killed = Lake(lake.spark, str(base))
    for _ in range(RUNS):
        run(base, sent)
        if backlog(pulsar, sent) == 0:
            break
    assert rows(killed.read("usage")) == rows(lake.read("usage"))


def test_brokers_that_do_not_answer_and_wrong_names_are_said(
    pulsar: Standalone, tmp_path: Path
) -> None:
    for url, text in (
        (f"{pulsar.service_url}/only-a-tenant", "is no topic"),
        ("pulsar://127.0.0.1:1/ops/usage/records", "cannot be read"),
        (f"{pulsar.service_url}/no-tenant/usage/records", "cannot be read"),
    ):
        done = processes.run("ingest", str(tmp_path / "tables"), url)
        assert (done.status, text in done.last) == (2, True), done.said
        assert "Traceback" not in done.said
