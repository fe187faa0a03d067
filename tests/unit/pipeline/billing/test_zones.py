"""Months in time zones: what changes of the clock make of days, and where hours begin."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.adjustments import adjust
from gateway.pipeline.billing.amounts import Used
from gateway.pipeline.billing.closing import Closed, dump, load
from gateway.pipeline.billing.figures import Completeness, Day, Use
from gateway.pipeline.billing.focus import Setting, rows
from gateway.pipeline.billing.invoices import Invoice, to_html
from gateway.pipeline.billing.months import Month, instant
from gateway.pipeline.billing.prices import RateCard, read
from gateway.pipeline.chargeback import MonthlyUse
from gateway.pipeline.invoicing import bill, close

HOUR = 3_600_000
MARCH, OCTOBER = Month(2026, 3), Month(2026, 10)
BERLIN = ZoneInfo("Europe/Berlin")
GB, ALL = 10**9, Completeness(1, 1)


def card(zone: str, more: str = "prices: {gb_in: 1}") -> RateCard:
    return read(f"version: 1\ncurrency: EUR\ntime_zone: {zone}\n{more}\n", Path("prices.yaml"))


def hours(month: Month, zone: str) -> list[float]:
    return [(b - a) / HOUR for a, b in pairwise(month.cuts(ZoneInfo(zone)))]


@pytest.mark.parametrize(
    ("month", "zone", "day", "length"),
    [
        (MARCH, "Europe/Berlin", 29, 23),
        (OCTOBER, "Europe/Berlin", 25, 25),
        (Month(2026, 3), "America/New_York", 8, 23),
        (Month(2026, 11), "America/New_York", 1, 25),
        (Month(2026, 10), "Australia/Lord_Howe", 4, 23.5),
        (Month(2026, 4), "Australia/Lord_Howe", 5, 24.5),
        (Month(2018, 11), "America/Sao_Paulo", 4, 23),  # which has no midnight
        (Month(2011, 12), "Pacific/Apia", 30, 0),  # which Samoa skipped
    ],
)
def test_days_on_which_clocks_change_have_other_hours(
    month: Month, zone: str, day: int, length: float
) -> None:
    found = hours(month, zone)
    assert found[day - 1] == length
    assert {it for number, it in enumerate(found, 1) if number != day} == {24}


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2026-10-01T00:00:00Z"),
        ("Europe/Berlin", "2026-09-30T22:00:00Z"),
        ("Asia/Kolkata", "2026-09-30T18:30:00Z"),
        ("Asia/Kathmandu", "2026-09-30T18:15:00Z"),
        ("America/St_Johns", "2026-10-01T02:30:00Z"),
        ("Pacific/Kiritimati", "2026-09-30T10:00:00Z"),
    ],
)
def test_a_month_begins_at_the_midnight_of_its_zone(zone: str, text: str) -> None:
    assert instant(OCTOBER.first, ZoneInfo(zone)) == text
    first = datetime.fromtimestamp(OCTOBER.cuts(ZoneInfo(zone))[0] / 1000, UTC)
    assert first == datetime.fromisoformat(text)


@given(
    st.sampled_from(sorted(it for it in available_timezones() if "/" in it)),
    st.integers(1970, 2037),
    st.integers(1, 12),
)
def test_days_follow_each_other_in_all_zones(zone: str, year: int, number: int) -> None:
    month, own = Month(year, number), ZoneInfo(zone)
    cuts = month.cuts(own)
    assert len(cuts) == len(month.days()) + 1
    assert list(cuts) == sorted(cuts)
    assert cuts[-1] == month.next().cuts(own)[0]
    for day, at in zip(month.days(), cuts, strict=False):
        local = datetime.fromtimestamp(at / 1000, own)
        assert day <= local.date() <= day + timedelta(days=1)  # the next one, if it was skipped


@pytest.mark.parametrize(
    "zone", ["Berlin", "EST", "localtime", "europe/berlin", "../etc/passwd", "+02:00", "7", "[UTC]"]
)
def test_another_text_is_no_time_zone(zone: str) -> None:
    with pytest.raises(ConfigurationError, match=r"prices.yaml:3: time_zone: .*is not a time zone"):
        card(zone)


def test_focus_has_the_instants_of_the_zone() -> None:
    changes = "prices: {gb_in: 1}\nchanges: [{valid_from: 2026-10-26, prices: {gb_in: 2}}]"
    berlin = card("Europe/Berlin", changes)
    days = tuple(Day(date(2026, 10, it), GB, 0, 0, 0, 0, ALL) for it in (25, 26))
    use = MonthlyUse((Used("a", 2 * GB),), {"a": Use(ALL, days)}, ALL)
    charges = bill(berlin, OCTOBER, use)
    late = adjust(berlin.currency, (OCTOBER, OCTOBER.next()), (), list(charges.lines())[1:])
    names = "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BillingPeriodEnd"
    found = [[row[it] for it in names] for row in rows(Setting(berlin, OCTOBER), charges, late)]
    month = ["2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"]
    assert found == [
        ["2026-09-30T22:00:00Z", "2026-10-25T23:00:00Z", *month],
        ["2026-10-25T23:00:00Z", "2026-10-31T23:00:00Z", *month],
        ["2026-10-25T23:00:00Z", "2026-10-31T23:00:00Z", *month],
    ]


def test_pages_name_the_zone() -> None:
    berlin = card("Europe/Berlin")
    charges = bill(berlin, OCTOBER, MonthlyUse((Used("a", GB),), {}, ALL))
    page = to_html(Invoice(berlin, OCTOBER, charges.statements[0], Use(ALL)))
    assert "Period, in Europe/Berlin" in page
    assert "UTC" not in page


def test_the_grace_begins_when_the_month_ends_in_its_zone(tmp_path: Path) -> None:
    month = Closed(OCTOBER, card("America/New_York"), ())
    ends = datetime(2026, 11, 4, 4, tzinfo=UTC)  # the clock goes back within the grace
    with pytest.raises(ConfigurationError, match="cannot be closed yet"):
        close(tmp_path, month, ends - timedelta(seconds=1))
    path = close(tmp_path, month, ends)
    assert load(path.read_bytes(), "closed.json") == month
    assert b"America/New_York" in dump(month)
