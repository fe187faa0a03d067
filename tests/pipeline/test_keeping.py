"""How long tables are kept, and what stays of their folder."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline.ingest import EARLIEST, ingest
from gateway.pipeline.keeping import FOREVER, TIERS, Old, Removed, compact, old, retain, tiers
from gateway.pipeline.lake import NO_DAY, Commit, Lake, State, needed
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


def state(**tables: list[str]) -> State:
    """Return tables with these days, all of one generation."""
    return State(
        days={table: {day: ["00000001-a"] for day in days} for table, days in tables.items()}
    )


def test_days_that_are_not_summed_up_stay() -> None:
    of = state(usage=["2026-01-01", "2026-01-02"], completeness=["2026-01-01"])
    assert old(of, kept(records=30), TODAY) == [
        Old("usage", ("2026-01-01",), "2026-01-02", ("2026-01-02",)),
        Old("events", (), "2026-01-02", ("2026-01-02",)),
    ]


def test_snapshots_beside_those_that_go_are_refused_too() -> None:
    of = state(stored=["2026-11-19", "2026-11-20", "2026-11-21"])
    assert old(of, kept(stored=4), TODAY) == [Old("stored", ("2026-11-19",), "2026-11-22")]


def test_lines_of_an_unknown_day_stay() -> None:
    of = state(quarantine=[EARLIEST, "2026-10-01"])
    (found,) = old(of, kept(quarantine=30), TODAY)
    assert found.days == ("2026-10-01",)


def test_nothing_goes_that_is_kept_for_ever() -> None:
    assert old(state(daily=["2020-05-05"], usage=[]), tiers({}), TODAY) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"usage": 3}, "keep one of records, stored"),
        ({"daily": 30}, "keep 93 days at least, or 0"),
        ({"records": 1}, "keep 2 days at least"),
    ],
)
def test_tiers_that_cannot_be_are_refused(given: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        tiers(given)


# -- compact -----------------------------------------------------------------------------------


def files_of(lake: Lake, table: str) -> list[str]:
    return sorted(it.name for it in (Path(lake.base) / "data" / table).iterdir())


def test_files_that_were_replaced_go_after_a_day(lake: Lake, records: Folder) -> None:
    for seq in range(3):
        records.add([used(seq + 1, msgs=seq)], closed=f"2026-11-20T0{seq}:00")
        ingest(lake, records.url, "usage", ms(NOW))
    before = [rows(lake.read(table)) for table in ("usage", "files")]
    view = lake.state()
    compact(lake, ms(NOW) + 1)
    assert rows(lake.read("usage", state=view)) == before[0]  # of a job that began before
    later = ms(NOW) + 2 * DAY_MS
    (Path(lake.base) / "data" / "usage" / "00000009-abcdefabcdef").mkdir()
    (Path(lake.base) / "data" / "usage" / "00000009-abcdefabcdef" / "x.parquet").write_text("torn")
    removed = compact(lake, later)
    assert removed.generations >= 4  # two of usage, three lists, and what no commit names
    assert removed.commits == 3
    assert [rows(lake.read(table)) for table in ("usage", "files")] == before
    assert len(files_of(lake, "usage")) == len(files_of(lake, "files")) == 1
    assert ingest(lake, records.url, "usage", ms(NOW)) == []
    assert compact(lake, later) == Removed()


def test_what_a_running_job_has_written_stays(lake: Lake, records: Folder) -> None:
    records.add([used(1)])
    change = lake.change("test", ms(NOW))
    ingest(lake, records.url, "usage", ms(NOW))
    running = lake.change("test", ms(NOW))
    running.replace("usage", lake.read("usage"), ["2026-11-20"])
    compact(lake, ms(NOW))
    running.commit()
    assert rows(lake.read("usage"), "seq") == [(1,)]
    assert change.generation not in files_of(lake, "usage")


def commit(
    number: int, at_ms: int, *entries: tuple[str, str, str], checkpoint: bool = False
) -> Commit:
    parent = f"{number - 1:08}-a" if number > 1 else ""
    return Commit(number, "a", parent, "test", at_ms, checkpoint, entries)


def test_what_was_seen_at_the_horizon_is_needed_and_all_that_came_since() -> None:
    commits = [
        commit(1, 10, ("usage", "d", "1"), ("files", NO_DAY, "1")),
        commit(2, 20, ("usage", "d", "2"), ("files", NO_DAY, "2")),
        commit(3, 30, ("usage", "d", "3"), ("files", NO_DAY, "1-3"), checkpoint=True),
        commit(4, 40, ("usage", "d", "4")),
    ]
    kept, read = needed(commits, 30)
    assert kept == {"00000003-a", "00000004-a"}
    assert read == {("usage", "3"), ("usage", "4"), ("files", "1-3")}
    kept, read = needed(commits, 25)
    assert kept == {it.generation for it in commits}
    assert ("usage", "2") in read
    assert ("usage", "1") not in read
    assert needed(commits, 5)[1] >= {("usage", "1"), ("usage", "4")}
