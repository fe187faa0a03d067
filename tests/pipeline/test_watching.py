"""Alerts as they happen: what a run tells, once, and what it leaves for the next one."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from gateway.pipeline import command
from gateway.pipeline.ingest import ingest
from gateway.pipeline.lake import Change, Lake
from gateway.pipeline.neighbours import incidents, slot_sums
from gateway.pipeline.schema import TABLES
from gateway.pipeline.watching import lines
from gateway.pipeline.watching.alerts import news
from gateway.pipeline.watching.batch import ranges
from gateway.pipeline.watching.run import watch
from gateway.pipeline.watching.state import folder
from tests.pipeline import processes
from tests.pipeline.alerting import DAYS, NOW, THEN, Gateway, T, know
from tests.pipeline.samples import Folder, rows, table, used
from tests.pipeline.test_neighbours import at, scenes

MINUTE = 60_000


@pytest.fixture
def gateway(records: Folder) -> Gateway:
    return Gateway(records)


@pytest.fixture
def known(lake: Lake) -> Lake:
    """Return tables that know what is usual."""
    know(lake)
    return lake


class Told(list[Row]):
    """Alerts that were given."""

    def __call__(self, alerts: Iterable[Row]) -> None:
        self.extend(alerts)

    def take(self) -> list[tuple[Any, ...]]:
        """Return what was given since the last look."""
        found = [(it.is_new, it.culprit, it.start_ms, it.end_ms, it.victims) for it in self]
        self.clear()
        return found


def test_an_incident_is_told_when_its_second_slot_ends_and_as_it_grows(
    known: Lake, gateway: Gateway, records: Folder
) -> None:
    told = Told()

    def run() -> tuple[int, list[tuple[Any, ...]]]:
        return watch(known, records.url, NOW, T, DAYS, told).alerts, told.take()

    gateway.close(gateway.slot(4), gateway.slot(5), gateway.slot(6, odd=True))
    assert run() == (0, [])
    gateway.close(gateway.slot(7, odd=True))
    assert run() == (1, [(True, "big", at(6), at(8), ["small"])])
    gateway.close(gateway.slot(8, odd=True), gateway.slot(9))
    assert run() == (1, [(False, "big", at(6), at(9), ["small"])])
    head = folder(known).state().head
    assert run() == (0, [])
    assert folder(known).state().head == head
    ingest(known, records.url, "usage", NOW)
    columns = ("culprit", "start_ms", "end_ms", "slots", "victims")
    found = rows(incidents(known.read("usage"), T), *columns)
    assert found == rows(folder(known).read("alerts"), *columns)
    assert len(found) == 1


def test_late_repeated_and_bad_lines_are_counted_and_not_judged(
    known: Lake, gateway: Gateway, records: Folder
) -> None:
    told = Told()
    first = gateway.slot(6)
    ahead = gateway.numbered([used(1, start_ms=NOW + 30 * MINUTE)])
    gateway.close(first, gateway.slot(10), ahead, ["{", '{"v": 9}'])
    run = watch(known, records.url, at(11), T, DAYS, told)
    assert (run.records, run.late, run.repeated, run.bad) == (17, 0, 0, 2)
    assert run.newest_ms == at(11)
    # The watermark is at the begin of slot 9 now.
    late = [gateway.slot(it, odd=True) for it in (7, 8)]
    gateway.close(*late, first, gateway.slot(9), ahead)
    run = watch(known, records.url, at(11), T, DAYS, told)
    assert (run.records, run.late, run.repeated, run.bad) == (8, 24, 1, 0)
    assert told == []
    runs = folder(known).read("watched_runs")
    assert rows(runs, "run", "late", "repeated", "bad") == [(1, 0, 0, 2), (2, 24, 1, 0)]


def test_kills_lose_no_alert_and_give_none_twice(
    known: Lake,
    gateway: Gateway,
    records: Folder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, commit = tmp_path / "alerts.jsonl", Change.commit

    def run(kill: str = "", *, before: bool = False) -> None:
        """Run, and be killed before or after a commit."""

        def killed(change: Change) -> None:
            is_it = change._job == kill
            if not (is_it and before):
                commit(change)
            if is_it:
                raise OSError("killed")

        def give(alerts: Iterable[Row]) -> None:
            lines.append(file, map(lines.line, alerts))

        monkeypatch.setattr(Change, "commit", killed)
        failure = pytest.raises((OSError, PySparkException), match="killed")
        with failure if kill else nullcontext():
            watch(known, records.url, NOW, T, DAYS, give)

    gateway.close(gateway.slot(6, odd=True), gateway.slot(7, odd=True))
    run("watch", before=True)
    assert rows(folder(known).read("alerts")) == []
    run("watch")
    assert not file.exists()
    run("tell", before=True)
    gateway.close(gateway.slot(8))
    run()
    (alert,) = map(json.loads, file.read_text().splitlines())
    assert (alert["alert"], alert["culprit"], alert["victims"]) == ("new", "big", ["small"])
    assert (alert["start"], alert["end"]) == ("2026-11-02T03:30:00Z", "2026-11-02T03:40:00Z")
    assert rows(folder(known).read("watched_runs"), "run", "records", "repeated") == [
        (1, 16, 0),
        (2, 8, 0),
    ]


POINTS = {
    "while a batch is written": "watch/data/watched_numbers/*",
    "while alerts are given": "watch/beside/data/watched_told/*",
}
"""What is there at each point, below the folder of tables."""


@pytest.mark.parametrize("point", POINTS)
def test_a_process_that_is_killed_loses_no_alert_and_gives_none_twice(
    known: Lake, gateway: Gateway, records: Folder, tmp_path: Path, point: str
) -> None:
    file, tables = tmp_path / "alerts.jsonl", Path(known.base)
    gateway.close(gateway.slot(6, odd=True), gateway.slot(7, odd=True))
    processes.run(
        *("neighbours", known.base, "--watch", records.url, "--out", str(file)),
        program=THEN,
        kill=processes.everything,
        at=lambda: any(tables.glob(POINTS[point])),
    )
    found = watch(
        known, records.url, NOW, T, DAYS, lambda it: lines.append(file, map(lines.line, it))
    )
    assert found.run == 1
    (alert,) = map(json.loads, file.read_text().splitlines())
    assert (alert["alert"], alert["culprit"], alert["victims"]) == ("new", "big", ["small"])
    (row,) = folder(known).read("watched_runs").collect()
    assert (row.records, row.repeated) == (16, 0)


def test_the_command_prints_alerts_and_looks_again(
    known: Lake,
    gateway: Gateway,
    records: Folder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def rest(seconds: float) -> None:
        assert seconds <= 60
        if not rests:
            rests.append(seconds)
            gateway.close(gateway.slot(8, odd=True))
            return
        raise TimeoutError("enough")

    rests = list[float]()
    monkeypatch.setattr(command, "_now_ms", lambda: NOW)
    monkeypatch.setattr(command, "_rest", rest)
    monkeypatch.setattr(command, "_end_when_interrupted", lambda: None)
    gateway.close(gateway.slot(6, odd=True), gateway.slot(7, odd=True), ["{"])
    options = Namespace(watch=records.url, days=28, late=None, every=MINUTE, out=None)
    with pytest.raises(TimeoutError, match="enough"):
        command._watch(known, T, options)
    said = capsys.readouterr()
    assert [json.loads(it)["alert"] for it in said.out.splitlines()] == ["new", "grown"]
    assert "1 alerts from 16 records; 0 came too late to be judged" in said.err
    assert "1 lines are no records" in said.err


@pytest.mark.parametrize("words", [["--late", "2d"], ["--late=-1s"], ["--every", "soon"]])
def test_odd_times_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["neighbours", "tables", "--watch", "usage", *words])
    assert "is no time to wait; 10m, up to 24h" in capsys.readouterr().err


# -- parts -------------------------------------------------------------------------------------


def test_ranges_of_numbers_have_no_gaps(spark: SparkSession) -> None:
    seen = [used(seq, start_ms=seq) for seq in (1, 2, 3, 7, 8)]
    other = used(4, start_ms=9, boot="c")
    assert rows(ranges(table(spark, [*seen, other]))) == [
        ("edge-1", "b", 1, 3, 3),
        ("edge-1", "b", 7, 8, 8),
        ("edge-1", "c", 4, 4, 9),
    ]


def incident(culprit: str, start: int, end: int, *victims: str) -> tuple[Any, ...]:
    """Return a row of the table `neighbours`. Times are numbers of slots."""
    figures = (1.0, 9.0, 9.0, 9.0, 0)
    return ("main", culprit, at(start), at(end), end - start, [*victims], *figures, "2026-11-02")


def test_an_alert_is_new_or_grows_and_stays_one(spark: SparkSession) -> None:
    none = spark.createDataFrame([], TABLES["alerts"])
    first = [
        *(incident("same", 1, 3, "a"), incident("longer", 1, 3, "a"), incident("more", 1, 3, "a")),
        *(incident("earlier", 3, 5, "a"), incident("cut", 1, 9, "a"), incident("again", 1, 3, "a")),
        *(incident("joined", 1, 3, "a"), incident("joined", 5, 7, "b")),
    ]
    told = news(spark.createDataFrame(first, TABLES["neighbours"]), none, 1, 1, 2)
    told = spark.createDataFrame(told.drop("before").collect(), TABLES["alerts"])
    later = [
        *(incident("same", 1, 3, "a"), incident("longer", 1, 4, "a"), incident("more", 1, 3, "b")),
        *(incident("earlier", 2, 6, "a"), incident("cut", 5, 10, "a")),
        *(incident("again", 7, 9, "a"), incident("joined", 1, 8, "c")),
    ]
    found = news(spark.createDataFrame(later, TABLES["neighbours"]), told, 2, 2, 2).collect()
    assert {
        it.culprit: (it.first_run, it.start_ms, it.end_ms, it.victims, len(it.before))
        for it in found
    } == {
        "longer": (1, at(1), at(4), ["a"], 1),
        "more": (1, at(1), at(3), ["b", "a"], 1),
        "earlier": (1, at(2), at(6), ["a"], 1),
        "cut": (1, at(1), at(10), ["a"], 1),
        "again": (2, at(7), at(9), ["a"], 0),
        "joined": (1, at(1), at(8), ["c", "a"], 2),
    }
    assert {it.last_run for it in found} == {2}


def test_sums_of_slots_give_the_same_incidents(spark: SparkSession) -> None:
    records = [it for scene in scenes().values() for it in scene.records]
    whole = table(spark, records)
    names = TABLES["watched_slots"].fieldNames()
    parts = [slot_sums(table(spark, part), T) for part in (records[::2], records[1::2])]
    summed = slot_sums(parts[0].unionByName(parts[1]), T).select(*names)
    found = rows(incidents(summed, T))
    assert found == rows(incidents(whole, T))
    assert found


def test_a_file_of_alerts_has_each_line_once_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "new" / "alerts.jsonl"
    lines.append(file, ["one", "two"])
    with file.open("a") as torn:
        torn.write("thr")
    lines.append(file, ["two", "three"])
    assert file.read_text() == "one\ntwo\nthree\n"
