"""From records to invoices: what tenants used in a month, and what late records change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.adjustments import Adjustment
from gateway.pipeline.billing.amounts import UNALLOCATED, Used, charge
from gateway.pipeline.billing.closing import Closed
from gateway.pipeline.billing.figures import Completeness
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import read
from gateway.pipeline.chargeback import MonthlyUse, month_of
from gateway.pipeline.ingest import ingest
from gateway.pipeline.invoicing import adjustments, close, closed_months, corrected_months, write
from gateway.pipeline.lake import Lake
from gateway.pipeline.rollup import rollup
from tests.pipeline import several
from tests.pipeline.samples import NOW, Folder, ms, used
from tests.pipeline.test_storage import Snapshots, topic

OCTOBER, NOVEMBER, DECEMBER = (Month(2026, it) for it in (10, 11, 12))
JANUARY = DECEMBER.next()

HOUR = 3_600_000

CARD = read(
    "version: 1\ncurrency: EUR\n"
    "prices: {gb_in: 1, gb_out: 2, million_messages_in: 3, connection_hour: 0.5}\n",
    Path("prices.yaml"),
)

GB = 10**9


def taken(lake: Lake, records: Folder) -> None:
    ingest(lake, records.url, "usage", ms(NOW))
    rollup(lake, ms(NOW))


@pytest.fixture
def october(lake: Lake, records: Folder) -> Lake:
    """Return tables of a month: alice uses topics of two tenants, bob connects and uses none."""
    topic = "persistent://acme/web/orders"
    alice, day = {"principal": "alice"}, "2026-10-05T01:00"
    records.add(
        [
            used(1, day, bytes_wire=3 * GB, msgs=10**6, topic=topic, **alice),
            used(2, day, op="deliver", bytes_wire=GB, msgs=5, topic=topic, **alice),
            used(3, day, op="connect", tenant=None, open_ms=10 * HOUR, **alice),
            used(4, day, op="connect", tenant=None, open_ms=HOUR, principal="bob"),
            used(5, day, tenant="__other__", bytes_wire=GB),
            used(6, "2026-10-06T01:00", tenant="best", bytes_wire=1),
            used(8, "2026-10-31T23:00", tenant="best", bytes_wire=GB, msgs=7, **alice),
            used(9, "2026-11-01T00:00", bytes_wire=100 * GB),
        ],
        name="october.jsonl.gz",
    )
    taken(lake, records)
    return lake


def test_a_month_is_summed_up_by_tenant(october: Lake) -> None:
    found = month_of(october, OCTOBER)
    sums = {it.tenant: (it.bytes_in, it.bytes_out, it.msgs_in, it.msgs_out) for it in found.used}
    assert sums == {
        "acme": (3 * GB, GB, 10**6, 5),
        "best": (GB + 1, 0, 7, 0),
        UNALLOCATED: (GB, 0, 0, 0),
    }
    assert found.completeness == Completeness(7, 8)


def test_the_time_of_connections_is_divided_by_use(october: Lake) -> None:
    """Four of alice's five gigabytes are acme's; bob used nothing of anybody."""
    times = {it.tenant: it.connection_ms for it in month_of(october, OCTOBER).used}
    assert times == {"acme": 8 * HOUR, "best": 2 * HOUR, UNALLOCATED: HOUR}


def test_an_invoice_knows_days_and_topics(october: Lake) -> None:
    use = month_of(october, OCTOBER).uses["acme"]
    busy = [it for it in use.days if it.bytes_in]
    assert [it.day for it in busy] == [date(2026, 10, 5)]
    assert busy[0].connection_ms == 8 * HOUR
    assert len(use.days) == 31
    assert [(it.name, it.bytes_in) for it in use.topics] == [
        ("persistent://acme/web/orders", 3 * GB)
    ]


def test_the_files_of_a_month_are_written(october: Lake, tmp_path: Path) -> None:
    charges = write(tmp_path, OCTOBER, CARD, month_of(october, OCTOBER))
    totals = {it.tenant: it.total for it in charges.statements}
    # 3 GB in, 1 GB out, a million messages and 8 of the 10 hours; 1 GB in and 2 hours.
    assert totals == {"acme": Decimal("12.00"), "best": Decimal("2.00")}
    assert charges.unallocated.total == Decimal("1.50")
    assert charges.total == Decimal("15.50")
    assert {it.name for it in (tmp_path / "2026-10").iterdir()} == {
        *("overview.html", "focus.csv", "invoice-acme.html", "invoice-acme.csv"),
        *("invoice-best.html", "invoice-best.csv"),
    }
    assert "12.00" in (tmp_path / "2026-10" / "invoice-acme.html").read_text()


@pytest.mark.tier("test")
def test_late_records_adjust_a_closed_month_once(
    october: Lake, records: Folder, tmp_path: Path
) -> None:
    def closed(month: Month, *adjusted: Adjustment) -> None:
        charges = write(tmp_path, month, CARD, month_of(october, month))
        lines = tuple(charges.lines())
        later = datetime(2026, 12, 30, tzinfo=UTC)
        close(tmp_path, Closed(month, CARD, lines, adjusted), later)

    def look(month: Month) -> dict[Month, tuple[Adjustment, ...]]:
        return adjustments(month, closed_months(tmp_path), lambda it: month_of(october, it), 3)

    closed(OCTOBER)
    assert look(NOVEMBER) == {}
    records.add([used(7, "2026-10-07T01:00", bytes_wire=GB)], closed="2026-11-20T01:00")
    taken(october, records)
    found = look(NOVEMBER)[NOVEMBER]
    assert [(it.tenant, it.original, it.amount) for it in found] == [
        ("acme", OCTOBER, Decimal("1.00"))
    ]
    closed(NOVEMBER, *found)
    assert look(DECEMBER) == {}


@pytest.mark.parametrize("order", list(permutations([NOVEMBER, DECEMBER])))
def test_each_correction_is_on_one_invoice_whichever_month_is_closed_first(
    order: tuple[Month, ...],
) -> None:
    def used_in(gigabytes: int) -> MonthlyUse:
        return MonthlyUse((Used("acme", bytes_in=gigabytes * GB),), {}, Completeness(1, 1))

    def ended(month: Month, gigabytes: int, *adjusted: Adjustment) -> Closed:
        return Closed(month, CARD, tuple(charge(CARD, used_in(gigabytes).used).lines()), adjusted)

    closed, billed = [ended(OCTOBER, 5)], Decimal(0)
    for late, month in enumerate((*order, JANUARY), 1):

        def look(it: Month, late: int = late) -> MonthlyUse:
            return used_in(5 + late if it == OCTOBER else 1)

        still_open = {*order, JANUARY} - {it.month for it in closed}
        invoices = {it: adjustments(it, closed, look, 3).get(it, ()) for it in still_open}
        assert [it for it, own in invoices.items() if own] == [min(still_open)]
        billed += sum(it.amount for it in invoices[month])
        closed = sorted([*closed, ended(month, 1, *invoices[month])], key=lambda it: it.month)
    assert billed == late


def test_a_closed_month_stays_as_billed_when_its_days_are_gone(october: Lake) -> None:
    """Its figures are none then, which would be credited."""
    lines = tuple(charge(CARD, month_of(october, OCTOBER).used).lines())
    closed = [Closed(OCTOBER, CARD, lines)]
    assert adjustments(NOVEMBER, closed, lambda _: MonthlyUse((), {}, Completeness(0, 0)), 3) != {}
    assert adjustments(NOVEMBER, closed, lambda _: None, 3) == {}


def test_a_month_is_closed_when_the_grace_is_over(tmp_path: Path) -> None:
    month = Closed(OCTOBER, CARD, ())
    ends = datetime(2026, 11, 1, tzinfo=UTC)
    with pytest.raises(ConfigurationError, match="2026-10 cannot be closed yet"):
        close(tmp_path, month, ends + timedelta(hours=71))
    assert closed_months(tmp_path) == []
    close(tmp_path, month, ends + timedelta(hours=72))
    assert [it.month for it in closed_months(tmp_path)] == [OCTOBER]


# -- the job -----------------------------------------------------------------------------------


PRICES = "version: 1\ncurrency: EUR\nprices: {gb_in: 1, stored_gb_hour: 1}\n"


def bill(lake: Lake, month: str, *words: str, prices: str = PRICES) -> None:
    """Write the invoices of a month by the command line, beside the tables."""
    folder = Path(lake.base).parent
    (folder / "prices.yaml").write_text(prices)
    places = "--prices", str(folder / "prices.yaml"), "--out", str(folder / "invoices")
    options = several.options_of(["chargeback", lake.base, *places, "--month", month, *words])
    assert options.job(lake.spark, options) == 0


def test_tables_that_are_not_there_close_no_month(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"/tables: has nothing to bill; name the folder"):
        bill(lake, "2025-10", "--close", "--empty")
    assert not (tmp_path / "invoices").exists()


def test_a_month_of_another_zone_is_refused_while_sums_are_of_days_in_utc(lake: Lake) -> None:
    with pytest.raises(ConfigurationError, match="time_zone: tables have sums of days in UTC"):
        bill(lake, "2025-10", prices=PRICES + "time_zone: Asia/Kathmandu\n")


def test_a_month_without_records_is_closed_if_somebody_says_that_it_is_empty(
    lake: Lake, records: Folder, tmp_path: Path
) -> None:
    records.add([used(1, "2025-11-05T01:00")])
    taken(lake, records)
    with pytest.raises(ConfigurationError, match=r"^2025-10 .* have no records of it; .* --empty$"):
        bill(lake, "2025-10", "--close")
    with pytest.raises(ConfigurationError, match="--empty: the tables have records of 2025-11"):
        bill(lake, "2025-11", "--close", "--empty")
    assert not (tmp_path / "invoices").exists()
    bill(lake, "2025-10", "--close", "--empty")
    assert [it.month for it in closed_months(tmp_path / "invoices")] == [Month(2025, 10)]


def test_a_month_that_lacks_records_is_closed_if_their_number_is_accepted(
    lake: Lake, records: Folder, tmp_path: Path
) -> None:
    records.add([used(seq, f"2025-10-0{seq}T01:00") for seq in (1, 3, 6)], name="x.jsonl.gz")
    taken(lake, records)
    missing = r"3 records are missing, on 2025-10-03 \(1\), 2025-10-06 \(2\); .* --accept-missing 3"
    for words in ((), ("--accept-missing", "2")):
        with pytest.raises(ConfigurationError, match=missing):
            bill(lake, "2025-10", "--close", *words)
    assert not (tmp_path / "invoices").exists()
    bill(lake, "2025-10", "--close", "--accept-missing", "3")
    assert [it.month for it in closed_months(tmp_path / "invoices")] == [Month(2025, 10)]


def test_what_came_after_the_sums_is_in_the_month_that_is_closed(
    lake: Lake, records: Folder, tmp_path: Path
) -> None:
    records.add([used(1, "2025-10-05T01:00", bytes_wire=GB)])
    taken(lake, records)
    snapshots = Snapshots(lake, tmp_path / "stored")
    snapshots.add("2025-10-05T10:00", topic("orders", GB))
    snapshots.take()
    records.add([used(2, "2025-10-05T02:00", bytes_wire=GB)], closed="2025-10-06T01:00")
    ingest(lake, records.url, "usage", ms(NOW))
    snapshots.add("2025-10-05T13:00", topic("orders", GB))
    ingest(lake, str(snapshots.folder), "stored", ms(NOW))
    bill(lake, "2025-10", "--close")
    (closed,) = closed_months(tmp_path / "invoices")
    quantities = {it.charge: it.quantity for it in closed.lines}
    assert quantities == {"bytes_in": 2, "stored_byte_hours": 3}


def test_a_closed_month_is_corrected_by_prices_from_a_day_on(
    lake: Lake, records: Folder, tmp_path: Path
) -> None:
    days = "2025-10-15T23:00", "2025-10-16T00:00"
    records.add([used(seq, day, bytes_wire=GB) for seq, day in enumerate(days, 1)])
    taken(lake, records)
    prices = "version: 1\ncurrency: EUR\nprices: {gb_in: 1}\n"
    bill(lake, "2025-10", "--close", prices=prices)
    before = {it: it.read_bytes() for it in (tmp_path / "invoices").rglob("*.*")}
    prices += "changes: [{valid_from: 2025-10-16, prices: {gb_in: 5}}]\n"
    bill(lake, "2025-10", "--correct", "the new price was left out", prices=prices)
    assert before == {it: it.read_bytes() for it in before}
    (correction,) = corrected_months(tmp_path / "invoices")
    assert {it.charge: it.since for it in correction.lines} == {"bytes_in": date(2025, 10, 16)}
    assert [str(it.amount) for it in correction.lines] == ["1.00", "5.00"]
    assert (tmp_path / "invoices/2025-10.1/credit-note-acme.html").exists()
    bill(lake, "2025-11", prices=prices)  # its days are none, and nothing is adjusted twice
    assert "2025-10" not in (tmp_path / "invoices/2025-11/focus.csv").read_text()
