"""The whole loop: real clients through the gateway to a real cluster with ZooKeeper, the records of
that through all jobs by their commands, and what comes out beside what gateway and brokers counted.

Nothing is made up. Neighbours are compared in slots of three seconds, so that the calm part of the
minute is what is usual, and no weeks of history are needed.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.pipeline.billing.meters import BY_FIGURE
from tests.clients.builders import java_client
from tests.pipeline import minute
from tests.pipeline.minute import ARCHIVE, HELD, NOISY, ORDERS, PARTITIONS, SMALL, TENANTS
from tests.real.artifacts import Artifacts
from tests.real.brokers.admin import topic_path
from tests.real.brokers.cluster import Cluster, LoadManager
from tests.real.brokers.jars import Say
from tests.real.brokers.tokens import Authority
from tests.real.clients import wait_until
from tests.real.fixtures import or_skip
from tests.real.frames import Kind, encode, frames
from tests.real.gateways import CLUSTER, Gateway, Plan, Plans
from tests.real.metrics import scrape, totals
from tests.real.tap import Tap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    *(pytest.mark.real, pytest.mark.spark, pytest.mark.gateway_only),
]

PRICES = """\
version: 1
currency: EUR
prices:
  gb_in: 90
  gb_out: 50
  million_messages_in: 40
  million_messages_out: 20
  connection_hour: 0.2
  stored_gb_hour: 10
"""

PATIENCE = 900
"""Seconds of a job, which takes ten on an idle machine."""

NAMES = [
    *(ORDERS[it] for it in (NOISY, SMALL)),
    *(f"{ORDERS[HELD]}-partition-{it}" for it in range(PARTITIONS)),
    ARCHIVE,
]
"""All topics and partitions."""

FIGURES = ("msgs_in", "msgs_out", "bytes_in", "bytes_out")


@dataclass(frozen=True)
class Counted:
    """What was counted of each topic or partition. `messages`, `bytes`, `frames`: the gateway, by
    name and direction. `stats`: the brokers. `delivered`: bytes of MESSAGE frames at the clients,
    in all, and without their commands."""

    messages: dict[tuple[str, ...], float]
    bytes: dict[tuple[str, ...], float]
    frames: dict[tuple[str, ...], float]
    stats: dict[str, Any]
    delivered: tuple[int, int]


@dataclass(frozen=True)
class Loop:
    """What a minute of traffic left. `internal`: what brokers said they store, when all topics had
    been closed. `said`: what each command printed."""

    folder: Path
    counted: Counted
    internal: dict[str, Any]
    months: tuple[str, ...]
    said: dict[str, str]

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        from gateway.pipeline.lake import Lake

        return Lake(spark, str(self.folder / "tables")).read(name)

    def billed(self) -> dict[str, Counter[str]]:
        """Return the quantities of all FOCUS rows by tenant and figure, in single units."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for month in self.months:
            text = (self.folder / "invoices" / month / "focus.csv").read_text()
            for row in csv.DictReader(text.splitlines()):
                if meter := BY_FIGURE.get(row["SkuId"]):
                    whole = round(float(row["ConsumedQuantity"]) * meter.per)
                    found[row["SubAccountId"]][meter.figure] += whole
        return found


@pytest.fixture(scope="module")
def real_loop(
    jars: Path,
    artifacts: Artifacts,
    plans: Plans,
    authority: Authority,
    say: Say,
    tmp_path_factory: pytest.TempPathFactory,
) -> Loop:
    """Return what came of the traffic, after all jobs: two or three minutes."""
    folder = tmp_path_factory.mktemp("loop")
    program = replace(or_skip(java_client, say), limit=PATIENCE)
    began, said = datetime.now(UTC), dict[str, str]()
    with ExitStack() as running:
        cluster = Cluster(jars, artifacts.directory("cluster-loop"), LoadManager.EXTENSIBLE)
        running.callback(cluster.stop)
        cluster.start()
        minute.prepare(cluster)
        gateway = Gateway(cluster, _plan(folder, plans), artifacts.directory("gateway-loop"))
        gateway.start()
        running.callback(gateway.stop)
        tap = Tap(gateway.untapped_url)
        running.callback(tap.close)
        ways = (tap.url, gateway.untapped_url, authority, program, artifacts.directory("loop"))
        minute.run(minute.Ways(*ways))
        tap.close()
        assert tap.leaks(cluster.traces) == []
        counted = _counted(cluster, gateway, tap)
        gateway.stop()
        for tenant in TENANTS:
            cluster.unload(f"{tenant}/web")
        internal = {name: _asked(cluster, name, "internalStats") for name in NAMES}
        for source, where in (("zookeeper", cluster.zookeeper), ("admin", cluster.admin.url)):
            words = ("snapshot", f"--{source}", where, "--cluster", CLUSTER, folder / "stored")
            said[source] = _run(*words)
            time.sleep(_a_byte_hour(internal))  # so that each tenant has stored one at least
    months = tuple(sorted({f"{it:%Y-%m}" for it in (began, datetime.now(UTC))}))
    said |= _jobs(folder, months)
    return Loop(folder, counted, internal, months, said)


def _a_byte_hour(internal: Mapping[str, Any]) -> float:
    """Return the seconds in which what each tenant has stored comes to a byte-hour."""
    stored = dict.fromkeys(TENANTS, 0)
    for name, it in internal.items():
        stored[_tenant(name)] += it["totalSize"]
    return 3600 / min(stored.values())


def _plan(folder: Path, plans: Plans) -> Plan:
    (folder / "rules.yaml").write_text(minute.RULES)
    token = {"principal_claim": "sub", "secret_file": str(plans.secret), "algorithms": ["HS256"]}
    usage = {"folder": str(folder / "usage"), "interval": "1s", "close_after": "1s"}
    return Plan(
        {"mode": "verify", "token": token},
        rules=folder / "rules.yaml",
        more={"usage": usage | {"gateway": "edge"}},
    )


def _counted(cluster: Cluster, gateway: Gateway, tap: Tap) -> Counted:
    """Return all counts, once gateway and brokers have counted the same messages."""

    def both() -> tuple[Counted, bool]:
        text, by = scrape(gateway.metrics_url), ("topic", "direction")
        messages, sizes, entries = (
            totals(text, f"gateway_topic_{it}_total", *by) for it in ("messages", "bytes", "frames")
        )
        stats = {name: _asked(cluster, name, "stats") for name in NAMES}
        found = Counted(messages, sizes, entries, stats, _delivered(tap))
        return found, all(
            messages[name, way] == stats[name][figure]
            for name in NAMES
            for way, figure in (("to_broker", "msgInCounter"), ("to_client", "msgOutCounter"))
        )

    wait_until(lambda: both()[1])
    return both()[0]


def _asked(cluster: Cluster, name: str, what: str) -> Any:
    path = f"admin/v2/{topic_path(name)}/{what}"
    return cluster.owner(name).admin.request("GET", path)


def _delivered(tap: Tap) -> tuple[int, int]:
    whole = inner = 0
    for recording in tap.recordings:
        for body in frames(bytes(recording)):
            if body[4:6] == bytes((0x08, Kind.MESSAGE)):
                whole += 4 + len(body)
                inner += len(body) - 4 - int.from_bytes(body[:4])
    return whole, inner


def _jobs(folder: Path, months: tuple[str, ...]) -> dict[str, str]:
    """Run the jobs, and return what each printed."""
    tables, prices = folder / "tables", folder / "prices.yaml"
    prices.write_text(PRICES)
    said = {
        "ingest": _run("ingest", tables, folder / "usage"),
        "rollup": _run("rollup", tables),
        "store": _run("store", tables, folder / "stored"),
        "neighbours": _run("neighbours", tables, "--slot", f"{minute.SLOT_S}s"),
        "abuse": _run("abuse", tables),
        "subscriptions": _run("subscriptions", tables, "--days", "0"),
    }
    for month in months:
        words = ("--prices", prices, "--month", month, "--out", folder / "invoices")
        said[f"chargeback {month}"] = _run("chargeback", tables, *words)
    return said


def _run(*words: object) -> str:
    command = [sys.executable, "-m", "gateway", "pipeline", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


# -- bills -------------------------------------------------------------------------------------


def test_invoices_bill_what_the_gateway_and_the_brokers_counted(real_loop: Loop) -> None:
    counted = real_loop.counted
    expected: dict[str, Counter[str]] = {it: Counter() for it in TENANTS}
    for name in NAMES:
        figures = expected[_tenant(name)]
        for way, figure in (("to_broker", "in"), ("to_client", "out")):
            figures[f"msgs_{figure}"] += round(counted.messages[name, way])
            figures[f"bytes_{figure}"] += round(counted.bytes[name, way])
    billed = real_loop.billed()
    assert {it: {of: billed[it][of] for of in FIGURES} for it in TENANTS} == expected
    assert all(expected[it][of] for it in TENANTS for of in FIGURES)
    messages = {it: expected[it]["msgs_in"] for it in (HELD, SMALL)}
    assert messages == {HELD: minute.COUNT + minute.ARCHIVED, SMALL: minute.COUNT}
    assert ", 0 doubled, 0 put aside" in real_loop.said["ingest"]
    for month in real_loop.months:
        assert "0 records are missing" in real_loop.said[f"chargeback {month}"]


def _tenant(name: str) -> str:
    return name.removeprefix("persistent://").partition("/")[0]


def test_brokers_count_the_bytes_of_frames_without_their_commands(real_loop: Loop) -> None:
    """So the bill is for what brokers count, and for 16 to 40 bytes of each frame besides: the two
    sizes at its begin, and the command."""
    counted = real_loop.counted
    whole, inner = counted.delivered
    assert whole == sum(counted.bytes[name, "to_client"] for name in NAMES)
    assert inner == sum(counted.stats[name]["bytesOutCounter"] for name in NAMES)
    for name in NAMES:
        sent, frames = (of[name, "to_broker"] for of in (counted.bytes, counted.frames))
        besides = sent - counted.stats[name]["bytesInCounter"]
        if _tenant(name) == NOISY:
            # How many messages are in a batch is left to the client.
            assert 16 * frames < besides < 24 * frames
        else:
            assert besides == sum(_command_size(number) for number in range(round(frames)))


def _command_size(number: int) -> int:
    """Return the bytes of a frame of one message before its checksum; identities of producers and
    numbers below 128 take one byte."""
    return 8 + len(encode({1: SEND, SEND: encode({1: 0, 2: number})}))


SEND = 6


# -- what is stored ----------------------------------------------------------------------------


def test_stored_bytes_are_those_of_the_brokers(real_loop: Loop, spark: SparkSession) -> None:
    expected = {name: it["totalSize"] for name, it in real_loop.internal.items()}
    counted = real_loop.counted.stats
    assert expected == {name: counted[name]["bytesInCounter"] for name in NAMES}
    found = real_loop.table(spark, "stored").collect()
    times: dict[str, int] = {}
    for source in ("zookeeper", "admin"):
        of_source = [it for it in found if it.source == source]
        (times[source],) = {it.snap_ms for it in of_source}
        sizes = {it.partition or it.topic: it.stored_bytes for it in of_source}
        assert {name: sizes[name] for name in NAMES} == expected
    lasted = times["admin"] - times["zookeeper"]
    hours = dict[str, int]()
    for topic in {name.partition("-partition-")[0] for name in NAMES}:
        size = sum(it for name, it in expected.items() if name.startswith(topic))
        hours[_tenant(topic)] = hours.get(_tenant(topic), 0) + size * lasted // 3_600_000
    billed = real_loop.billed()
    assert {it: billed[it]["stored_byte_hours"] for it in TENANTS} == hours
    assert all(hours.values())


def test_what_was_left_behind_is_found_and_nothing_else(real_loop: Loop) -> None:
    found = [it for it in real_loop.said["subscriptions"].splitlines() if "unread entries" in it]
    backlogs = {minute.UNREAD: minute.ARCHIVED, minute.LEFT: minute.ARCHIVED - minute.READ}
    assert sorted(it.partition(" unread")[0] for it in found) == sorted(
        f"{CLUSTER}: {name!a} of {ARCHIVE!a} has {number}" for name, number in backlogs.items()
    )


# -- incidents ---------------------------------------------------------------------------------


def test_the_flood_is_found_and_nothing_else(real_loop: Loop, spark: SparkSession) -> None:
    (found,) = real_loop.table(spark, "neighbours").collect()
    assert (found.cluster, found.culprit) == (CLUSTER, NOISY)
    # The other one has its part of the limit, and is slowed at most.
    assert HELD in found.victims
    assert found.slots >= minute.FLOOD_S // minute.SLOT_S - 1
    assert found.held_ms > 0
    assert f"{NOISY!a} grew" in real_loop.said["neighbours"]


def test_attacks_are_told_from_a_mistake(real_loop: Loop) -> None:
    said = real_loop.said["abuse"]
    assert "3 findings" in said
    found = {it.partition(": ")[2] for it in said.splitlines() if " failures" in it}
    assert found == {
        f"spraying (an attack) of unknown principals from {minute.SPRAYERS}, 50 failures",
        f"guessed (an attack) of {minute.GUESSED!a} from {minute.GUESSERS}, 40 failures",
        f"expired_storm (a mistake) of unknown principals from {minute.HOME}, 120 failures",
    }
