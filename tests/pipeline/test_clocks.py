"""Clocks of gateways that are wrong, and days on which nothing was written."""

from __future__ import annotations

from typing import Any

from gateway.pipeline.billing.figures import Completeness
from gateway.pipeline.billing.months import Month
from gateway.pipeline.chargeback import month_of
from gateway.pipeline.ingest import Taken, ingest
from gateway.pipeline.lake import Lake
from gateway.pipeline.missing import gaps
from gateway.pipeline.rollup import rollup
from tests.pipeline.samples import NOW, Folder, ms, rows, used

HOUR_MS = 3_600_000


def take(lake: Lake, records: Folder, now: str = NOW) -> Taken:
    (taken,) = ingest(lake, records.url, "usage", ms(now))
    rollup(lake, ms(now))
    return taken


def days(lake: Lake) -> list[tuple[Any, ...]]:
    return rows(lake.read("daily"), "day", "records", "msgs")


def missing(lake: Lake) -> list[tuple[Any, ...]]:
    return rows(gaps(lake.read("completeness")), "day", "missing")


def test_records_count_once_on_the_days_of_their_gateways_clocks(
    lake: Lake, records: Folder
) -> None:
    """Of the same minute, as three gateways have it; and of one whose clock is no clock."""
    for gw, time in (
        ("edge-1", NOW),
        ("edge-2", "2026-11-25T03:00"),
        ("edge-3", "2026-11-23T21:00"),
        ("edge-4", "2026-11-25T12:01"),
    ):
        both = [used(seq, time, gw=gw, msgs=seq) for seq in (1, 2)]
        records.add(both, closed=time, name=f"{gw}-b-1-2.jsonl.gz")
    taken = take(lake, records)
    assert (taken.records, taken.quarantined) == (6, 2)
    assert (taken.ahead_ms, taken.ahead) == (15 * HOUR_MS, "edge-2")
    assert days(lake) == [("2026-11-23", 2, 3), ("2026-11-24", 2, 3), ("2026-11-25", 2, 3)]
    assert missing(lake) == [("2026-11-23", 0), ("2026-11-24", 0), ("2026-11-25", 0)]
    aside = rows(lake.read("quarantine"), "day", "reason")
    assert aside == [("2026-11-25", "more than a day ahead")] * 2

    # The day that one gateway was in before the others is summed up again when they come to it.
    records.add([used(3, "2026-11-25T09:00", msgs=3)])
    later = take(lake, records, "2026-11-25T12:00")
    assert (later.days, later.ahead) == (["2026-11-25"], "")
    assert days(lake)[-1] == ("2026-11-25", 3, 6)
    assert sum(number for _, number in missing(lake)) == 0


def test_a_clock_that_is_set_back_loses_nothing_but_may_look_so(
    lake: Lake, records: Folder
) -> None:
    """Numbers jump on both days: more counts as missing than is, never less."""
    times = ["2026-11-22T01:00", "2026-11-23T01:00", "2026-11-22T02:00", "2026-11-23T02:00"]
    records.add([used(seq, time) for seq, time in enumerate(times, 1)])
    take(lake, records)
    assert [number for _, number, _ in days(lake)] == [2, 2]
    assert missing(lake) == [("2026-11-22", 1), ("2026-11-23", 1)]


def test_a_day_without_records_is_no_gap(lake: Lake, records: Folder) -> None:
    records.add([used(1, "2026-10-05T01:00", msgs=1), used(2, "2026-10-09T01:00", msgs=2)])
    take(lake, records)
    assert days(lake) == [("2026-10-05", 1, 1), ("2026-10-09", 1, 2)]
    october = month_of(lake, Month(2026, 10))
    assert [(it.tenant, it.msgs_in) for it in october.used] == [("acme", 3)]
    assert october.completeness == Completeness(2, 2)
    assert month_of(lake, Month(2026, 9)).used == ()


def test_one_identity_on_two_days_gives_the_same_whatever_comes_first(
    lake: Lake, records: Folder
) -> None:
    """No gateway writes that; each day has it once."""
    records.add([used(1, "2026-11-20T01:00")], name="a.jsonl.gz")
    take(lake, records)
    records.add([used(1, "2026-11-20T01:00"), used(1, "2026-11-21T01:00")], name="b.jsonl.gz")
    take(lake, records)
    assert rows(lake.read("usage"), "day", "seq") == [("2026-11-20", 1), ("2026-11-21", 1)]
