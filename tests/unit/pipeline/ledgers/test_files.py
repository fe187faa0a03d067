"""Files of snapshots: whole once they have a name."""

from __future__ import annotations

import fcntl
import gzip
from pathlib import Path

import msgspec
import pytest

from gateway.pipeline.ledgers.files import CLUSTER, path_of, written
from gateway.pipeline.ledgers.snapshot import Snapshot, Taken

NOON = 1_795_521_600_000  # 2026-11-24 12:00 UTC
TAKEN = Taken(NOON, "main", "zookeeper")


def record(name: str) -> Snapshot:
    return Snapshot(v=1, snap_ms=NOON, cluster="main", source="zookeeper", topic=name)


def names(folder: Path) -> list[str]:
    return sorted(str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file())


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    with written(tmp_path, TAKEN) as append:
        for name in "abc":
            append(record(name))
        assert names(tmp_path) == [f".main-{NOON}.jsonl.gz.tmp"]
    assert names(tmp_path) == [f"dt=2026-11-24/main-{NOON}.jsonl.gz"]
    lines = gzip.decompress(path_of(tmp_path, TAKEN).read_bytes()).splitlines()
    read = [msgspec.json.decode(line, type=Snapshot) for line in lines]
    assert read == [record("a"), record("b"), record("c")]


def test_a_snapshot_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with written(tmp_path, TAKEN) as append:
            append(record("a"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert names(tmp_path) == []


def test_a_snapshot_without_topics_is_a_file_too(tmp_path: Path) -> None:
    with written(tmp_path, TAKEN):
        pass
    assert gzip.decompress(path_of(tmp_path, TAKEN).read_bytes()) == b""


def test_what_a_killed_snapshot_left_is_removed_by_the_next_of_its_cluster(tmp_path: Path) -> None:
    for name in (".main-1.jsonl.gz.tmp", ".main-2-3.jsonl.gz.tmp", ".other-1.jsonl.gz.tmp"):
        (tmp_path / name).write_bytes(b"torn")
    under_way = tmp_path / ".main-4.jsonl.gz.tmp"
    with under_way.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with written(tmp_path, TAKEN):
            pass
    assert names(tmp_path) == [
        ".main-2-3.jsonl.gz.tmp",
        ".main-4.jsonl.gz.tmp",
        ".other-1.jsonl.gz.tmp",
        f"dt=2026-11-24/main-{NOON}.jsonl.gz",
    ]


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".a", "-a", "a" * 72, "a\n"])
def test_names_of_clusters_never_lead_elsewhere(name: str) -> None:
    assert not CLUSTER.fullmatch(name)
