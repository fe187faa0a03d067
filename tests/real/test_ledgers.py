"""Snapshots of what a real cluster stores, beside what its broker says of itself."""

from __future__ import annotations

import argparse
import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pulsar  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.pipeline.ledgers import command
from gateway.pipeline.ledgers.metadata import MAGIC
from gateway.pipeline.ledgers.options import add_arguments
from gateway.pipeline.ledgers.snapshot import Cursor, Snapshot
from gateway.pipeline.ledgers.zookeeper import ROOT, connected

from .artifacts import Artifacts
from .brokers.admin import topic_path
from .brokers.zookeeper import Kept, ZooKeeper
from .clients import EARLIEST, RECEIVE_MS, Client, close_client, open_client, send_all, wait_until

pytestmark = pytest.mark.gateway_only

TOPIC = "persistent://public/default/clicks+ü:1"
PARTITIONS = 2
NAMES = [f"{TOPIC}-partition-{number}" for number in range(PARTITIONS)]
ABANDONED, USED = "left behind/ä", "used"
MESSAGES, IN_A_BATCH, IN_A_LEDGER = 240, 4, 5
EARLY = 2 * IN_A_LEDGER + 2
"""Entries that are acknowledged without holes. Where these end with a ledger, the broker moves the
position to the next one when it loads the topic, and the cursor is open again."""

KINDS = [("NONE", "NONE"), ("LZ4", "ZSTD"), ("ZLIB", "SNAPPY")]
"""Compressions of topics and of cursors: each kind once, at fifteen seconds for a broker."""


@pytest.fixture(params=KINDS, ids="-".join)
def broker(
    request: pytest.FixtureRequest, jars: Path, artifacts: Artifacts
) -> Iterator[tuple[Kept, tuple[str, str]]]:
    """Yield a broker with small ledgers, and how it compresses what it keeps in its ZooKeeper."""
    of_topics, of_cursors = request.param
    directory = artifacts.directory(f"ledgers-{of_topics}")
    extra: dict[str, str | int] = {
        "managedLedgerMaxEntriesPerLedger": IN_A_LEDGER,
        "managedLedgerMinLedgerRolloverTimeMinutes": 0,
        "managedLedgerInfoCompressionType": of_topics,
        "managedCursorInfoCompressionType": of_cursors,
        # Else only large values are compressed.
        "managedLedgerInfoCompressionThresholdInBytes": 0,
        "managedCursorInfoCompressionThresholdInBytes": 0,
    }
    with ExitStack() as running:
        zookeeper = ZooKeeper(jars, directory)
        running.callback(zookeeper.stop)
        zookeeper.start()
        started = Kept(jars, directory, zookeeper, extra)
        running.callback(started.stop)
        started.start()
        yield started, request.param


def test_snapshots_of_both_sources_agree_with_the_broker(
    broker: tuple[Kept, tuple[str, str]], tmp_path: Path
) -> None:
    kept, kinds = broker
    kept.admin.create_partitioned_topic(TOPIC, PARTITIONS)
    client = open_client(kept.service_url)
    reader = client.create_reader(NAMES[0], pulsar.MessageId.earliest)
    used(client)
    check_in_use(kept, tmp_path)
    reader.close()
    close_client(client)

    kept.admin.unload(TOPIC)
    says = [Says(kept, name) for name in NAMES]  # which loads the partitions again
    for source in ("zookeeper", "admin"):
        found = snapshot(kept, source, tmp_path / f"closed-{source}")
        for name, said in zip(NAMES, says, strict=True):
            said.agrees(found[name])
    check_values(kept, kinds)
    check_held(kept, found)


def used(client: Client) -> None:
    """Leave a backlog: one subscription that nobody uses, and one that acknowledges with holes."""
    for name in (ABANDONED, USED):
        subscribed(client, name).close()
    producer = client.create_producer(
        TOPIC,
        batching_enabled=True,
        batching_max_messages=IN_A_BATCH,
        batching_max_publish_delay_ms=1000,
        message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
    )
    send_all(producer, [b"%0100d" % number for number in range(MESSAGES)])
    producer.close()
    consumer = subscribed(client, USED)
    received: Counter[str] = Counter()
    for _ in range(MESSAGES):
        message = consumer.receive(RECEIVE_MS)
        received[message.topic_name()] += 1
        is_early = received[message.topic_name()] <= EARLY * IN_A_BATCH
        # All messages of a batch, as the broker keeps nothing of others.
        if is_early or message.message_id().entry_id() % 3:
            consumer.acknowledge(message)
    assert set(received) == set(NAMES)
    # It stays open: what it has acknowledged is in a ledger of its own.


def subscribed(client: Client, name: str) -> Any:
    return client.subscribe(
        TOPIC, name, consumer_type=pulsar.ConsumerType.Shared, initial_position=EARLIEST
    )


def snapshot(kept: Kept, source: str, folder: Path) -> dict[str, Snapshot]:
    """Return the records of a snapshot by the names of topics."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    where = kept.zookeeper.address if source == "zookeeper" else kept.admin.url
    words = [f"--{source}", where, "--cluster", "real", str(folder)]
    assert command.run(parser.parse_args(words)) == command.COMPLETE
    (path,) = folder.glob("dt=*/real-*.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).splitlines()
    found = [msgspec.json.decode(line, type=Snapshot) for line in lines]
    path.unlink()
    return {it.partition or it.topic: it for it in found}


class Says:
    """What a broker says of one of its topics."""

    def __init__(self, kept: Kept, name: str) -> None:
        path = f"admin/v2/{topic_path(name)}"
        self.internal = kept.admin.request("GET", f"{path}/internalStats")
        stats = kept.admin.request("GET", f"{path}/stats?getPreciseBacklog=true")
        self.backlog = {it: each["msgBacklog"] for it, each in stats["subscriptions"].items()}

    def agrees(self, found: Snapshot) -> None:
        """Hold a record to it."""
        assert (found.tenant, found.namespace, found.topic) == ("public", "public/default", TOPIC)
        assert self.internal["numberOfEntries"] > 2 * IN_A_LEDGER
        assert found.stored_entries == self.internal["numberOfEntries"]
        assert found.stored_bytes == self.internal["totalSize"]
        ledgers = [(it["ledgerId"], it["entries"], it["size"]) for it in self.internal["ledgers"]]
        assert [(it.id, it.entries, it.bytes) for it in found.ledgers] == ledgers
        assert found.open_ledger == ledgers[-1][0]
        assert {it.subscription for it in found.cursors} == {ABANDONED, USED}
        for cursor in found.cursors:
            self._agrees(cursor, lagging=False)
            known = found.source == "admin"  # ZooKeeper does not know that the open one is empty
            assert cursor.backlog_known == known
            assert (cursor.oldest_unread_ms is None) == known

    def _agrees(self, cursor: Cursor, *, lagging: bool) -> None:
        assert cursor.lagging == lagging
        said = self.internal["cursors"][ENCODED[cursor.subscription]]
        assert f"{cursor.mark_ledger}:{cursor.mark_entry}" == said["markDeletePosition"]
        assert cursor.deleted_ranges == said["totalNonContiguousDeletedMessagesRange"]
        assert cursor.backlog_entries == self.backlog[cursor.subscription]
        assert cursor.backlog_entries
        if cursor.subscription == USED:
            assert cursor.deleted_ranges > 2
            assert cursor.backlog_entries < self.backlog[ABANDONED]


ENCODED = {ABANDONED: "left+behind%2F%C3%A4", USED: USED}


def check_in_use(kept: Kept, folder: Path) -> None:
    """Of topics in use the broker knows the position; its ZooKeeper has an older one."""

    def is_current() -> bool:
        found = snapshot(kept, "admin", folder / "open-admin")
        says = [Says(kept, name).backlog for name in NAMES]
        cursors = [{it.subscription: it for it in found[name].cursors} for name in NAMES]
        (reader,) = set(cursors[0]) - {ABANDONED, USED}
        assert cursors[0][reader].transient
        assert not cursors[0][USED].transient
        pairs = zip(cursors, says, strict=True)
        backlogs = [{it: of[it].backlog_entries for it in said} for of, said in pairs]
        return backlogs == says and all(of[USED].backlog_known for of in cursors)

    wait_until(is_current)  # acknowledgements arrive a little later
    found = snapshot(kept, "zookeeper", folder / "open-zookeeper")
    for name in NAMES:
        cursors = {it.subscription: it for it in found[name].cursors}
        assert set(cursors) == {ABANDONED, USED}
        assert (cursors[USED].lagging, cursors[USED].backlog_known) == (True, False)
        assert not cursors[ABANDONED].lagging


def check_values(kept: Kept, kinds: tuple[str, str]) -> None:
    """The broker did compress what was read."""
    _, _, local = ENCODED_NAMES[0].rpartition("/")
    path = f"{ROOT}/public/default/persistent/{local}"
    with connected(kept.zookeeper.address) as client:
        values = [client.get(it)[0] for it in (path, f"{path}/{ENCODED[ABANDONED]}")]
    assert [it.startswith(MAGIC) for it in values] == [it != "NONE" for it in kinds]


ENCODED_NAMES = [topic_path(name) for name in NAMES]


def check_held(kept: Kept, found: dict[str, Snapshot]) -> None:
    """What the abandoned subscription holds is what goes with it."""
    held = {name: cursor_of(found[name], ABANDONED) for name in NAMES}
    for name, cursor in held.items():
        assert cursor.holds_bytes
        assert cursor_of(found[name], USED).holds_bytes == 0
        subscription = ENCODED[ABANDONED].replace("+", "%20")
        path = f"admin/v2/{topic_path(name)}/subscription/{subscription}"
        kept.admin.request("DELETE", path)
        left = found[name].stored_bytes - cursor.holds_bytes
        assert left > 0
        wait_until(partial(is_stored, kept, name, left))
        ledgers = Says(kept, name).internal["ledgers"]
        assert len(found[name].ledgers) - len(ledgers) == cursor.holds_ledgers


def is_stored(kept: Kept, name: str, size: int) -> bool:
    return bool(Says(kept, name).internal["totalSize"] == size)


def cursor_of(found: Snapshot, name: str) -> Cursor:
    return next(it for it in found.cursors if it.subscription == name)
