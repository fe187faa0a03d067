"""The command, without a network: its options, its statuses and its last line."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from gateway.errors import ConfigurationError, UpstreamError
from gateway.pipeline.ledgers import command, zookeeper
from gateway.pipeline.ledgers.metadata import Refusal, TopicInfo
from gateway.pipeline.ledgers.options import add_arguments
from gateway.pipeline.ledgers.snapshot import Seen, Snapshot, Walked
from tests.unit.pipeline.ledgers.samples import closed

WHOLE = Seen("persistent://acme/web/a", TopicInfo((closed(1, 5),)))
BROKEN = Seen("persistent://acme/web/b", Refusal("torn"))
ZOOKEEPER = ("--zookeeper", "127.0.0.1:1", "--cluster", "main")


def options(*words: str | Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([str(it) for it in words])


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> list[Seen | Exception]:
    """Return what the ZooKeeper of the test has: topics, or what is raised."""
    found: list[Seen | Exception] = []

    @contextmanager
    def connected(hosts: str) -> Iterator[str]:
        yield hosts

    def topics(client: str, walked: Walked) -> Iterator[Seen]:
        walked.vanished = 3
        for it in found:
            if isinstance(it, Exception):
                raise it
            yield it

    monkeypatch.setattr(zookeeper, "connected", connected)
    monkeypatch.setattr(zookeeper, "topics", topics)
    return found


def records(folder: Path) -> list[Snapshot]:
    (path,) = folder.glob("dt=*/main-*.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Snapshot) for line in lines]


def test_a_snapshot_is_written_and_summed_up(
    walk: list[Seen | Exception], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk += [WHOLE]
    assert command.run(options(*ZOOKEEPER, tmp_path)) == command.COMPLETE
    (record,) = records(tmp_path)
    assert (record.topic, record.cluster, record.source) == (WHOLE.name, "main", "zookeeper")
    said = capsys.readouterr()
    assert said.err.startswith("1 topics, 500 bytes, 0 refused, 3 vanished meanwhile; ")
    assert said.out == ""


def test_a_refusal_is_in_the_records_and_in_the_status(
    walk: list[Seen | Exception], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk += [WHOLE, BROKEN]
    assert command.run(options(*ZOOKEEPER, tmp_path)) == command.INCOMPLETE
    assert [it.refused for it in records(tmp_path)] == [None, "torn"]
    assert "2 topics, 500 bytes, 1 refused" in capsys.readouterr().err


def test_a_source_that_fails_leaves_no_file(
    walk: list[Seen | Exception], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk += [WHOLE, UpstreamError("away")]
    assert command.run(options(*ZOOKEEPER, tmp_path)) == command.INCOMPLETE
    assert capsys.readouterr().err == "no snapshot: away\n"
    assert not [it for it in tmp_path.rglob("*") if it.is_file()]


def test_progress_is_told(
    walk: list[Seen | Exception],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    walk += [WHOLE, WHOLE]
    monkeypatch.setattr(command, "EACH", 0)
    command.run(options(*ZOOKEEPER, tmp_path))
    said = capsys.readouterr().err.splitlines()
    assert [it.split(",")[0] for it in said] == ["1 topics", "2 topics", "2 topics"]


def test_a_folder_that_cannot_be_written_is_a_mistake(
    walk: list[Seen | Exception], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        command.run(options(*ZOOKEEPER, tmp_path / "file"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--zookeeper", "a:1", "--cluster", "../x"), "--cluster ../x"),
        ((*ZOOKEEPER, "--token-file", "t"), "--token-file"),
        ((*ZOOKEEPER, "--ca-file", "t"), "--ca-file"),
        (("--zookeeper", "a", "--cluster", "main"), "--zookeeper a"),
        (("--admin", "a", "--cluster", "main"), "--admin a"),
    ],
)
def test_wrong_options_are_mistakes(words: tuple[str, ...], text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        command.run(options(*words, tmp_path))
    assert text in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("--cluster", "main", "f"),
        ("--zookeeper", "a:1", "f"),
        (*ZOOKEEPER,),
        (*ZOOKEEPER, "--admin", "http://a", "f"),
    ],
)
def test_a_source_a_cluster_and_a_folder_are_needed(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        options(*words)
