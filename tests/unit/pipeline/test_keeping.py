"""Which days are old enough to go, and which files nobody reads."""

from __future__ import annotations

from datetime import date

import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.months import Month
from gateway.pipeline.chargeback import gone_before
from gateway.pipeline.ingest import EARLIEST
from gateway.pipeline.keeping import FOREVER, TIERS, Old, holding, old, tiers, unread
from gateway.pipeline.lake import NO_DAY, Commit, State, Written, needed

TODAY = date(2026, 11, 24)


def kept(**days: int) -> dict[str, int]:
    """Return tiers of which only these ever end."""
    return {**dict.fromkeys(TIERS, FOREVER), **days}


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


def test_snapshots_that_are_not_summed_up_stay_and_those_beside_them() -> None:
    """A snapshot of the 4th changes the sums of the 3rd to the 5th, which need the 2nd."""
    of = state(stored=["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"])
    of.days["stored"]["2026-01-04"] = ["00000003-a"]
    of.days["stored_daily"] = {"2026-01-01": ["00000002-a"]}
    assert old(of, kept(stored=90), TODAY) == [
        Old(
            "stored",
            ("2026-01-01",),
            "2026-01-04",
            ("2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"),
        )
    ]


def test_snapshots_beside_those_that_go_are_refused_too() -> None:
    of = state(stored=["2026-11-19", "2026-11-20", "2026-11-21"])
    of.days["stored_daily"] = {"2026-11-21": ["00000002-a"]}
    assert old(of, kept(stored=4), TODAY) == [Old("stored", ("2026-11-19",), "2026-11-22")]


def test_events_of_a_day_whose_usage_goes_are_refused_too() -> None:
    """They would have the day summed up anew, without its usage."""
    of = state(usage=["2026-01-01"], completeness=["2026-01-01"])
    assert [(it.table, it.before) for it in old(of, kept(records=90), TODAY)] == [
        ("usage", "2026-08-26"),
        ("events", "2026-08-26"),
    ]


SUMS = ["2026-05-31", "2026-06-30", "2026-07-01", "2026-08-01", "2026-08-02", "2026-11-01"]
MAY, JUNE, JULY, AUGUST = (Month(2026, it) for it in (5, 6, 7, 8))


def test_sums_stay_from_the_first_month_on_that_is_not_closed() -> None:
    """Bills are made of two of three tables, and of no records that are summed up."""
    of = state(
        **dict.fromkeys(("usage", "completeness"), SUMS[1:2]),
        **dict.fromkeys(("daily", "latency_daily"), SUMS),
        stored_daily=SUMS[2:],
    )
    found = old(of, kept(records=90, daily=93), TODAY, {MAY, JULY})
    assert found == [
        Old("usage", ("2026-06-30",), "2026-08-26"),
        Old("events", (), "2026-08-26"),
        Old("daily", tuple(SUMS[:1]), "2026-06-01", unbilled=tuple(SUMS[1:5])),
        Old("latency_daily", tuple(SUMS[:5]), "2026-08-23"),
        Old("stored_daily", (), "2026-06-01", unbilled=tuple(SUMS[2:5])),
    ]
    assert holding(found, {MAY, JULY}) == {JUNE: 2, AUGUST: 2}


def test_sums_go_of_all_months_that_are_closed() -> None:
    of = state(daily=SUMS)
    for closed in ({MAY, JUNE, JULY, AUGUST}, None):
        found = old(of, kept(daily=93), TODAY, closed)
        assert found[0] == Old("daily", tuple(SUMS[:5]), "2026-08-23")
        assert holding(found, closed or set()) == {}


def test_a_month_that_is_not_summed_up_yet_is_not_closed() -> None:
    of = state(daily=["2026-07-01"], usage=["2026-06-05"])
    (found, *_) = old(of, kept(daily=93), TODAY, {JULY})
    assert found == Old("daily", (), "2026-06-01", unbilled=("2026-07-01",))
    assert holding([found], {JULY}) == {JUNE: 1}


def test_sums_stay_of_who_has_closed_nothing_and_of_all_months_that_hold_them() -> None:
    found = old(state(daily=SUMS), kept(daily=93), TODAY)
    assert found[0] == Old("daily", (), "2026-05-01", unbilled=tuple(SUMS[:5]))
    assert holding(found, set()) == {MAY: 1, JUNE: 1, JULY: 1, AUGUST: 2}


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


def test_a_month_of_which_days_are_gone_is_no_bill() -> None:
    of = State(retired={"usage": "2026-11-20", "daily": "2026-08-23"})
    assert gone_before(of, Month(2026, 8)) == "2026-08-23"
    assert gone_before(of, Month(2026, 7)) == "2026-08-23"
    assert gone_before(of, Month(2026, 9)) is None
    assert gone_before(State(retired={"stored_daily": "2026-09-01"}), Month(2026, 9)) is None
    assert gone_before(State(), Month(2020, 1)) is None


# -- files -------------------------------------------------------------------------------------


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


def written(folder: str, last_ms: int) -> Written:
    return Written(folder, last_ms, 7)


def test_folders_that_nobody_reads_are_those_of_no_commit_and_of_no_running_job() -> None:
    commits = [
        commit(1, 10, ("usage", "d", "1")),
        commit(2, 20, ("usage", "d", "2"), checkpoint=True),
    ]
    found, forgotten = unread(
        commits,
        [
            written("data/usage/1", 9),
            written("data/usage/2", 19),
            written("data/usage/3", 5),  # of a job that was killed, here and in parts of files
            written("data/usage/3", 6),
            written("commits/3", 8),
            written("data/hourly/4", 9),  # of a job that is at its next table
            written("data/daily/4", 31),
            written("commits/00000002-a", 19),
        ],
        30,
    )
    assert found == {"data/usage/1": 7, "data/usage/3": 14, "commits/3": 7}
    assert forgotten == ["00000001-a"]
