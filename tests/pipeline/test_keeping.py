"""How long tables are kept, and what stays of their folder."""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline import command
from gateway.pipeline.ingest import ingest
from gateway.pipeline.keeping import FOREVER, TIERS, Removed, compact, retain
from gateway.pipeline.lake import Change, Lake
from gateway.pipeline.rollup import rollup
from tests.pipeline.samples import NOW, Folder, happened, ms, rows, used

TODAY = date(2026, 11, 24)
DAY_MS = 86_400_000


def kept(**days: int) -> dict[str, int]:
    """Return tiers of which only these ever end."""
    return {**dict.fromkeys(TIERS, FOREVER), **days}


def taken(lake: Lake, records: Folder) -> None:
    for stream in ("usage", "events"):
        ingest(lake, records.url, stream, ms(NOW))


# -- retain ------------------------------------------------------------------------------------


@pytest.fixture
def filled(lake: Lake, records: Folder) -> Lake:
    """Return tables of three days, summed up."""
    records.add([used(seq, f"2026-11-2{seq}T01:00", msgs=seq) for seq in range(3)[1:]])
    records.add([happened(3, "2026-11-21T01:00"), happened(4, "2026-11-22T01:00")])
    taken(lake, records)
    rollup(lake, ms(NOW))
    return lake


def test_old_records_go_and_their_sums_stay(filled: Lake, records: Folder) -> None:
    sums = rows(filled.read("daily"))
    found = retain(filled, kept(records=2), TODAY, ms(NOW))
    assert [(it.table, it.days) for it in found] == [
        ("usage", ("2026-11-21",)),
        ("events", ("2026-11-21",)),
    ]
    assert rows(filled.read("usage"), "day") == [("2026-11-22",)]
    assert rollup(filled, ms(NOW)) == []
    assert rows(filled.read("daily")) == sums
    # A record that comes now would stand for its whole day.
    records.add([used(9, "2026-11-21T02:00", msgs=9)], closed="2026-11-24T01:00")
    records.add([used(10, "2026-11-22T02:00", msgs=9)], closed="2026-11-24T01:00")
    taken(filled, records)
    assert rows(filled.read("quarantine"), "reason") == [
        ("of a day before 2026-11-22, which is retired",)
    ]
    assert rollup(filled, ms(NOW)) == ["2026-11-22"]
    assert rows(filled.read("daily").where("op = 'send'"), "day", "msgs") == [
        ("2026-11-21", 1),
        ("2026-11-22", 11),
    ]
    # What is refused stays refused, also behind a checkpoint and with longer tiers.
    compact(filled, ms(NOW))
    retain(filled, kept(records=90), TODAY, ms(NOW))
    assert filled.state().retired == {"usage": "2026-11-22", "events": "2026-11-22"}


# -- compact -----------------------------------------------------------------------------------


def files_of(lake: Lake, table: str) -> list[str]:
    return sorted(it.name for it in (Path(lake.base) / "data" / table).iterdir())


LONG_MS = 10_000 * DAY_MS
"""So long before, nothing was written: no file is old enough to go."""


def sweep(lake: Lake, days: int) -> Removed:
    """Compact tables some days after `NOW`, at which all that is there was written, whatever the
    clock of this machine says."""
    for path in Path(lake.base.removeprefix("file:")).rglob("*"):
        os.utime(path, (ms(NOW) / 1000, ms(NOW) / 1000))
    return compact(lake, ms(NOW) + days * DAY_MS)


def left_by_killed_jobs(tables: Path) -> None:
    """Add what jobs leave: files that no commit names, and those that Spark has not shown yet."""
    torn = "_temporary/0/_temporary/attempt_1_0001_m_000000_1"
    for path in (
        "data/usage/00000009-abcdefabcdef/x.parquet",
        f"data/daily/00000009-abcdefabcdef/{torn}/dt=2026-11-20/x.parquet",
        "data/daily/00000009-abcdefabcdef/_temporary/0/task_1_0001_m_000001/dt=2026-11-20/x.parquet",
        f"commits/00000009-abcdefabcdef/{torn}/part-0.txt",
    ):
        (tables / path).parent.mkdir(parents=True, exist_ok=True)
        (tables / path).write_text("torn")


def left_before_anything_was_written(tables: Path) -> None:
    """Add a folder of a job that was killed at once, and one of a file that has nothing yet."""
    (tables / "data/daily/00000008-abcdefabcdef/_temporary/0").mkdir(parents=True)
    (tables / "data/usage/00000008-abcdefabcdef").mkdir(parents=True)
    (tables / "data/usage/00000008-abcdefabcdef/x.parquet").touch()


@pytest.mark.tier("test")
def test_files_that_were_replaced_go_after_a_day(lake: Lake, records: Folder) -> None:
    for seq in range(3):
        records.add([used(seq + 1, msgs=seq)], closed=f"2026-11-20T0{seq}:00")
        ingest(lake, records.url, "usage", ms(NOW))
    before = [rows(lake.read(table)) for table in ("usage", "files")]
    view = lake.state()
    sweep(lake, 1)
    assert rows(lake.read("usage", state=view)) == before[0]  # of a job that began before
    left_by_killed_jobs(Path(lake.base))
    left_before_anything_was_written(Path(lake.base))
    removed = sweep(lake, 3)
    assert removed.generations >= 8  # two of usage, three lists, and what no commit names
    assert removed.commits == 3
    assert [rows(lake.read(table)) for table in ("usage", "files")] == before
    assert len(files_of(lake, "usage")) == len(files_of(lake, "files")) == 1
    # A day that came in parts is one file, so there is nothing to join.
    assert len(list(Path(lake.base).glob("data/usage/*/dt=*/*.parquet"))) == 1
    assert ingest(lake, records.url, "usage", ms(NOW)) == []
    assert sweep(lake, 3) == Removed()
    assert not list(Path(lake.base).rglob("*abcdefabcdef"))


def test_tables_that_are_not_there_need_nothing(lake: Lake) -> None:
    assert compact(lake, ms(NOW)) == Removed()
    assert retain(lake, dict(TIERS), TODAY, ms(NOW)) == []


def test_where_only_spark_comes_files_are_emptied(lake: Lake, records: Folder) -> None:
    """As of a URL of another filesystem: an empty file stays of each folder."""
    spark_alone = Lake(lake.spark, f"file:{lake.base}")
    for seq in range(2):
        records.add([used(seq + 1)], closed=f"2026-11-20T0{seq}:00")
        ingest(spark_alone, records.url, "usage", ms(NOW))
    sweep(spark_alone, 1)
    left_by_killed_jobs(Path(lake.base))
    assert sweep(spark_alone, 3).commits == 2
    assert sweep(spark_alone, 3) == Removed()
    assert rows(spark_alone.read("usage"), "seq") == [(1,), (2,)]
    assert ingest(spark_alone, records.url, "usage", ms(NOW)) == []
    sizes = sorted(
        sum(it.stat().st_size for it in folder.rglob("*") if not it.name.startswith("."))
        for folder in Path(lake.base).glob("data/usage/*/")
    )
    assert len(sizes) == 3
    assert sizes[1] < 5000 < sizes[2]
    assert not list(Path(lake.base).rglob("_temporary"))


def test_a_kill_while_files_go_leaves_tables_that_are_read(
    lake: Lake, records: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seq in range(3):
        records.add([used(seq + 1, msgs=seq)], closed=f"2026-11-20T0{seq}:00")
        ingest(lake, records.url, "usage", ms(NOW))
    sweep(lake, 1)
    before, remove = rows(lake.read("usage")), Lake.remove
    removed = list[str]()

    def killed(self: Lake, folder: str) -> None:
        """Remove two folders and half of the next one."""
        removed.append(folder)
        if len(removed) % 3:
            remove(self, folder)
            return
        for it in sorted(it for it in (Path(self.base) / folder).rglob("*") if it.is_file())[1::2]:
            it.unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(Lake, "remove", killed)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            sweep(lake, 3)
        state = lake.state()
        assert rows(lake.read("usage", state=state)) == before
        assert len(rows(lake.read("files", state=state))) == 3
    monkeypatch.undo()
    assert any(it.startswith("commits/") for it in removed)
    sweep(lake, 3)
    assert sweep(lake, 3) == Removed()
    assert rows(lake.read("usage")) == before


def test_what_a_running_job_has_written_stays(lake: Lake, records: Folder) -> None:
    records.add([used(1)])
    ingest(lake, records.url, "usage", ms(NOW))
    running = lake.change("test", ms(NOW))
    running.replace("usage", lake.read("usage"), ["2026-11-20"])
    sweep(lake, 1)
    running.commit()
    assert rows(lake.read("usage"), "seq") == [(1,)]


# -- jobs at the same time ---------------------------------------------------------------------

WINNERS = {"ingest": ("0" * 12, "f" * 12), "the other": ("f" * 12, "0" * 12)}
"""Who wins, by the identities of commits: of ingest's, and of what comes while it runs."""


@pytest.fixture(params=WINNERS)
def meanwhile(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], object]], None]:
    """Return what has a job run before the next commit of another one."""

    def at_commit(job: Callable[[], object]) -> None:
        identities, commit = iter(WINNERS[request.param]), Change.commit
        usual = secrets.token_hex
        monkeypatch.setattr(secrets, "token_hex", lambda size: next(identities, usual(size)))

        def committed(self: Change) -> None:
            monkeypatch.setattr(Change, "commit", commit)
            job()
            commit(self)

        monkeypatch.setattr(Change, "commit", committed)

    return at_commit


def test_what_is_taken_meanwhile_counts_once(
    lake: Lake, records: Folder, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    for seq in (1, 2):
        records.add([used(seq)], closed=f"2026-11-20T0{seq}:00")
        ingest(lake, records.url, "usage", ms(NOW))
    records.add([used(3)], closed="2026-11-20T03:00")
    meanwhile(lambda: compact(lake, ms(NOW), kept_ms=LONG_MS))
    taken = ingest(lake, records.url, "usage", ms(NOW))
    assert sum(it.new for it in taken) == 1
    assert rows(lake.read("usage"), "seq") == [(1,), (2,), (3,)]
    assert len(rows(lake.read("files"))) == 3
    sweep(lake, 3)
    assert rows(lake.read("usage"), "seq") == [(1,), (2,), (3,)]


def test_a_late_record_of_a_day_that_goes_meanwhile_is_summed_up_or_put_aside(
    filled: Lake, records: Folder, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """Never is it all that its day has."""
    records.add([used(9, "2026-11-21T02:00", msgs=9)], closed="2026-11-24T01:00")
    meanwhile(lambda: retain(filled, kept(records=2), TODAY, ms(NOW)))
    taken = ingest(filled, records.url, "usage", ms(NOW))
    rollup(filled, ms(NOW))
    retain(filled, kept(records=2), TODAY, ms(NOW))
    assert rows(filled.read("usage"), "day") == [("2026-11-22",)]
    sums = dict(rows(filled.read("daily").where("op = 'send'"), "day", "msgs"))
    put_aside = sum(it.retired for it in taken)
    assert (sums["2026-11-21"], put_aside) in {(10, 0), (1, 1)}


# -- jobs --------------------------------------------------------------------------------------


def run(lake: Lake, *words: str) -> None:
    """Run a job by its command line, in the session of the tests."""
    parser = argparse.ArgumentParser()
    command.add_to(parser)
    options = parser.parse_args([words[0], lake.base, *words[1:]])
    assert options.job(lake.spark, options) == 0


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Return what gives all that was said since it was last asked."""
    return lambda: capsys.readouterr().err


def test_sums_of_a_month_stay_until_it_is_closed_and_then_its_bill_stays(
    lake: Lake, records: Folder, tmp_path: Path, said: Callable[[], str]
) -> None:
    records.add([used(1, "2025-01-05T01:00", bytes_wire=10**9)])
    records.add([used(2, "2025-02-05T01:00", bytes_wire=10**9)])
    ingest(lake, records.url, "usage", ms(NOW))
    rollup(lake, ms(NOW))
    invoices = str(tmp_path / "invoices")
    (tmp_path / "prices.yaml").write_text("version: 1\ncurrency: EUR\nprices: {gb_in: 2}\n")
    keep = "retain", "--keep", "daily=93", "--invoices", invoices
    bill = "chargeback", "--prices", str(tmp_path / "prices.yaml"), "--out", invoices, "--month"

    run(lake, *keep)
    assert "\n2 days of sums stay, of months that are not closed" in (text := said())
    assert ": 2025-01 (1), 2025-02 (1); close them by" in text
    assert rows(lake.read("usage")) == []
    run(lake, *bill, "2025-01", "--close")
    run(lake, *keep)
    assert ": 2025-02 (1); close them by" in said()
    assert rows(lake.read("daily"), "day") == [("2025-02-05",)]

    run(lake, *bill, "2025-01")
    gone = "stays as it was billed: its days before 2025-02-01 are gone\n"
    assert said() == f"2025-01 is closed and {gone}"
    run(lake, *bill, "2025-02")
    assert said().startswith(f"2025-01 {gone}")
    invoice = (tmp_path / "invoices" / "2025-02" / "invoice-acme.csv").read_text()
    assert "adjustment" not in invoice
    assert ",2.00," in invoice

    run(lake, *keep, "--even-unbilled")
    assert rows(lake.read("daily")) == []
    with pytest.raises(ConfigurationError, match=r"--month 2025-02: its days before .* are gone"):
        run(lake, *bill, "2025-02")


@pytest.mark.parametrize("ms", [DAY_MS - 1, 0, -1])
def test_what_jobs_may_still_read_is_never_removed(lake: Lake, ms: int) -> None:
    options = argparse.Namespace(tables=lake.base, unread=ms)
    with pytest.raises(ConfigurationError, match="--unread: jobs may still read younger files"):
        command._compact(lake.spark, options)


def test_a_time_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["compact", "tables", "--unread", "soon"])
    assert "argument --unread: soon: " in capsys.readouterr().err
