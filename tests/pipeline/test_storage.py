"""What a cluster stores over time, from its snapshots."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.pipeline.billing.months import Month
from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.ledgers.snapshot import Cursor, Ledger, Snapshot
from gateway.pipeline.storage import abandoned, around, byte_hours, store, unlocated, without_ages
from tests.pipeline.samples import NOW, ms, rows

GB = 10**9


def topic(name: str, stored: int, cursors: list[Cursor] | None = None, **fields: Any) -> Snapshot:
    """Return what is stored of a topic; its time and cluster come with the snapshot."""
    usual = {"v": 1, "snap_ms": 0, "cluster": "", "source": "zookeeper", "tenant": "acme"}
    whole = f"persistent://acme/web/{name}"
    ledgers = [Ledger(id=1, entries=1, bytes=stored)]
    made = {"namespace": "acme/web", "topic": whole, "stored_bytes": stored, "ledgers": ledgers}
    return Snapshot(**{**usual, **made, "cursors": cursors or [], **fields})


class Snapshots:
    """A folder of snapshots, and the tables that are made of it."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.folder = folder

    def add(self, time: str, *topics: Snapshot, cluster: str = "main") -> None:
        """Add a snapshot."""
        path = self.folder / f"dt={time[:10]}" / f"{cluster}-{ms(time)}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        for it in topics:
            it.snap_ms, it.cluster = ms(time), cluster
        path.write_bytes(gzip.compress(b"".join(msgspec.json.encode(it) + b"\n" for it in topics)))

    def take(self) -> list[str]:
        """Take what is new; return the days that were summed up."""
        ingest(self.lake, str(self.folder), "stored", ms(NOW))
        return store(self.lake, ms(NOW))

    def days(self) -> list[tuple[Any, ...]]:
        """Return day and byte-hours in GB-hours, of all topics together."""
        found = self.lake.read("stored_daily").groupBy("day").sum("byte_hours").collect()
        return sorted((row[0], row[1] / GB) for row in found)


@pytest.fixture
def snapshots(lake: Lake, tmp_path: Path) -> Snapshots:
    """Return an empty folder."""
    return Snapshots(lake, tmp_path / "stored")


@pytest.mark.tier("test")
def test_what_is_stored_counts_until_the_next_snapshot(snapshots: Snapshots) -> None:
    snapshots.add("2026-11-20T10:00", topic("orders", 2 * GB), topic("mails", GB))
    snapshots.add("2026-11-20T14:00", topic("orders", 5 * GB))
    snapshots.add("2026-11-20T15:00", topic("orders", 5 * GB))
    snapshots.take()
    name, sums = "persistent://acme/web/orders", ("topic", "byte_hours", "bytes_most", "bytes_last")
    assert rows(snapshots.lake.read("stored_daily"), *sums) == [
        ("persistent://acme/web/mails", 4 * GB, GB, GB),
        (name, 13 * GB, 5 * GB, 5 * GB),
    ]
    assert byte_hours(snapshots.lake, Month(2026, 11)) == {"acme": 17 * GB}


def test_what_stands_at_midnight_is_divided(snapshots: Snapshots) -> None:
    snapshots.add("2026-11-20T20:00", topic("orders", GB))
    snapshots.add("2026-11-21T02:00", topic("orders", GB))
    assert snapshots.take() == ["2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22"]
    assert snapshots.days() == [("2026-11-20", 4.0), ("2026-11-21", 2.0)]
    assert snapshots.take() == []


def test_a_snapshot_stands_for_a_day_at_most(snapshots: Snapshots) -> None:
    snapshots.add("2026-11-20T12:00", topic("orders", GB))
    snapshots.add("2026-11-23T12:00", topic("orders", GB))
    snapshots.take()
    assert snapshots.days() == [("2026-11-20", 12.0), ("2026-11-21", 12.0), ("2026-11-23", 0.0)]


def test_a_new_snapshot_ends_what_the_last_one_of_the_day_before_shows(
    snapshots: Snapshots,
) -> None:
    snapshots.add("2026-11-20T20:00", topic("orders", GB))
    snapshots.take()
    assert snapshots.days() == [("2026-11-20", 0.0)]
    snapshots.add("2026-11-21T02:00", topic("orders", GB))
    assert "2026-11-20" in snapshots.take()
    assert snapshots.days() == [("2026-11-20", 4.0), ("2026-11-21", 2.0)]


def test_clusters_have_snapshots_of_their_own_and_partitions_are_added_up(
    snapshots: Snapshots,
) -> None:
    parts = [topic("orders", GB, partition=f"persistent://acme/web/orders/{it}") for it in "ab"]
    snapshots.add("2026-11-20T10:00", *parts)
    snapshots.add("2026-11-20T11:00", topic("orders", GB), cluster="west")
    snapshots.add("2026-11-20T12:00")
    snapshots.add("2026-11-20T12:00", *parts)
    snapshots.add("2026-11-20T13:00", topic("orders", GB), cluster="west")
    snapshots.take()
    found = rows(snapshots.lake.read("stored_daily"), "cluster", "byte_hours")
    assert found == [("main", 4 * GB), ("west", 2 * GB)]


@pytest.mark.tier("test")
def test_abandoned_subscriptions_come_with_what_deleting_them_frees(snapshots: Snapshots) -> None:
    def cursor(name: str, **fields: Any) -> Cursor:
        usual = {"backlog_entries": 5, "oldest_unread_ms": 10_000, "holds_bytes": GB}
        return Cursor(subscription=name, **{**usual, **fields})

    before = [cursor("gone since")]
    now = [
        cursor("old"),
        cursor("large", holds_bytes=5 * GB),
        cursor("young", oldest_unread_ms=10),
        cursor("lagging", lagging=True),
        cursor("reader", transient=True),
        cursor("unknown", oldest_unread_ms=None),
    ]
    snapshots.add("2026-11-20T10:00", topic("orders", GB, before))
    snapshots.add("2026-11-20T11:00", topic("orders", GB, now))
    for cluster in ("main", "west"):
        of_brokers = topic("orders", GB, [cursor("old", oldest_unread_ms=None)], source="admin")
        snapshots.add("2026-11-20T12:00", of_brokers, cluster=cluster)
    snapshots.take()
    assert without_ages(snapshots.lake) == ["west"]
    found = abandoned(snapshots.lake, 1000).collect()
    assert [(it.subscription, it.holds_bytes) for it in found] == [("large", 5 * GB), ("old", GB)]
    assert found[0].topic == "persistent://acme/web/orders"


def test_brokers_say_where_a_cursor_is_that_lags_in_zookeeper(snapshots: Snapshots) -> None:
    closed = {1: "2026-11-01T00:00", 2: "2026-11-10T00:00", 3: "2026-11-19T00:00"}
    of_zookeeper = [Ledger(id=it, entries=5, closed_ms=ms(time)) for it, time in closed.items()]
    of_brokers = [Ledger(id=it, entries=5) for it in (1, 2, 3, 4)]

    def cursor(name: str, oldest: int | None, **fields: Any) -> Cursor:
        usual = {"backlog_entries": 7, "holds_bytes": GB, "oldest_ledger": oldest}
        return Cursor(subscription=name, **{**usual, **fields})

    lagging = [
        cursor(name, 1, lagging=True, oldest_unread_ms=10**10, holds_bytes=9 * GB)
        for name in ("stuck", "has read one", "in the open ledger", "done", "reader", "not asked")
    ]
    exact = [
        cursor("stuck", 1, holds_bytes=3 * GB),
        cursor("has read one", 2),
        cursor("in the open ledger", 4),
        cursor("done", None, backlog_entries=0),
        cursor("reader", 1, transient=True),
        cursor("only with brokers", 1),
    ]
    ledgers = [*of_zookeeper, Ledger(id=4)]
    snapshots.add("2026-11-20T10:00", topic("orders", GB, lagging, ledgers=ledgers))
    asked = topic("orders", GB, exact, ledgers=of_brokers, source="admin")
    snapshots.add("2026-11-20T12:00", asked)
    snapshots.take()
    day = 86_400_000
    found = abandoned(snapshots.lake, 7 * day).collect()
    columns = ("subscription", "backlog_entries", "oldest_unread_ms", "holds_bytes")
    assert [tuple(it[name] for name in columns) for it in found] == [
        ("stuck", 7, ms("2026-11-20T12:00") - ms(closed[1]), 3 * GB),
        ("has read one", 7, ms("2026-11-20T12:00") - ms(closed[2]), GB),
    ]
    young = {it.subscription for it in abandoned(snapshots.lake, 0).collect()}
    assert young == {"stuck", "has read one"}
    assert unlocated(snapshots.lake) == 1


def test_days_have_neighbours() -> None:
    assert around(["2026-03-01"]) == ["2026-02-28", "2026-03-01", "2026-03-02"]
