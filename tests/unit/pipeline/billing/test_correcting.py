"""Credit notes and new invoices of closed months."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.amounts import MINIMUM, UNALLOCATED, Used, charge
from gateway.pipeline.billing.closing import Closed, Correction, dump
from gateway.pipeline.billing.figures import Completeness, Day, Use
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, read
from gateway.pipeline.chargeback import MonthlyUse
from gateway.pipeline.invoicing import (
    adjustments,
    bill,
    closed_months,
    correct,
    corrected_months,
    write,
)

GB = 10**9
OCTOBER, NOVEMBER, DECEMBER = (Month(2026, it) for it in (10, 11, 12))
MONTHS = [OCTOBER, NOVEMBER, *(Month(2026 + it // 12, it % 12 + 1) for it in range(11, 20))]
ISSUED = date(2026, 12, 4)
ALL = Completeness(1, 1)


def priced(text: str, currency: str = "EUR") -> RateCard:
    return read(f"version: 1\ncurrency: {currency}\n{text}\n", Path("prices.yaml"))


WRONG, RIGHT = priced("prices: {gb_in: 10}\nminimum: 5"), priced("prices: {gb_in: 1}\nminimum: 5")
ONE_CONTRACT = priced("prices: {gb_in: 10}\nminimum: 5\ntenants: {a: {prices: {gb_in: 1}}}")


def used(**gigabytes: int) -> MonthlyUse:
    """Return a month by tenants; `nobody` has none."""
    names = {it: UNALLOCATED if it == "nobody" else it for it in gigabytes}
    rows = tuple(Used(names[it], bytes_in=number * GB) for it, number in gigabytes.items())
    return MonthlyUse(rows, {}, ALL)


def closed(use: MonthlyUse, card: RateCard = WRONG, month: Month = OCTOBER) -> Closed:
    return Closed(month, card, tuple(bill(card, month, use).lines()))


def corrected(folder: Path, card: RateCard, bills: list[Closed], use: MonthlyUse) -> Closed:
    """Correct October, and return the correction as it is read back."""
    again = Closed(OCTOBER, card, (), (), Correction(0, ISSUED, "wrong price"))
    correct(folder, again, bills, use)
    return corrected_months(folder)[-1]


def of_focus(folder: Path, number: int = 1) -> list[dict[str, str]]:
    path = folder / f"2026-10.{number}" / "focus.csv"
    return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))


def billed(folder: Path, number: int = 1) -> dict[tuple[str, str], Decimal]:
    """Return what documents add up to, by the names of their files."""
    found = {}
    for path in (folder / f"2026-10.{number}").glob("*-*.csv"):
        (total,) = (it for it in csv.DictReader(path.open()) if it["Kind"] == "total")
        found[total["Invoice"], total["RefersTo"]] = Decimal(total["Amount"])
    return found


def test_an_invoice_is_credited_and_written_again_with_numbers_of_their_own(tmp_path: Path) -> None:
    use = used(a=3, nobody=1)
    found = corrected(tmp_path, RIGHT, [closed(use)], use)
    assert found.correction is not None
    assert (found.correction.number, found.correction.tenants) == (1, ("", "a"))
    assert billed(tmp_path) == {
        ("2026-10.1-credit/a", "2026-10/a"): Decimal("-30.00"),
        ("2026-10.1/a", "2026-10/a"): Decimal("5.00"),
    }
    assert {it.name for it in (tmp_path / "2026-10.1").iterdir()} == {
        *("focus.csv", "credit-note-a.html", "credit-note-a.csv"),
        *("invoice-a.html", "invoice-a.csv"),
    }
    assert not closed_months(tmp_path)


def test_documents_say_what_they_refer_to_and_why(tmp_path: Path) -> None:
    use = used(a=3)
    corrected(tmp_path, RIGHT, [closed(use)], use)
    pages = {
        it: (tmp_path / f"2026-10.1/{it}-a.html").read_text() for it in ("credit-note", "invoice")
    }
    assert "Credit note for" in pages["credit-note"]
    assert "Reverses" in pages["credit-note"]
    assert "Replaces" in pages["invoice"]
    for text in pages.values():
        assert "2026-10/a" in text
        assert "wrong price" in text
        assert "2026-12-04" in text


def test_a_tenant_whose_lines_stay_gets_nothing(tmp_path: Path) -> None:
    use = used(a=3, b=4)
    corrected(tmp_path, ONE_CONTRACT, [closed(use)], use)
    assert {it["SubAccountId"] for it in of_focus(tmp_path)} == {"a"}
    assert {number for number, _ in billed(tmp_path)} == {"2026-10.1-credit/a", "2026-10.1/a"}


def test_focus_has_corrections_in_the_period_of_their_issue(tmp_path: Path) -> None:
    use = used(a=3, nobody=1)
    corrected(tmp_path, RIGHT, [closed(use)], use)
    rows = of_focus(tmp_path)
    assert {it["ChargeClass"] for it in rows} == {"Correction"}
    assert {(it["ChargePeriodStart"], it["BillingPeriodStart"]) for it in rows} == {
        ("2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z")
    }
    assert [(it["InvoiceId"], it["SkuId"], it["BilledCost"]) for it in rows] == [
        ("2026-10.1-credit/", "bytes_in", "-10.00"),
        ("2026-10.1/", "bytes_in", "1.00"),
        ("2026-10.1-credit/a", "bytes_in", "-30.00"),
        ("2026-10.1/a", "bytes_in", "3.00"),
        ("2026-10.1/a", MINIMUM, "2.00"),
    ]


def test_a_second_correction_reverses_the_invoice_that_a_tenant_got_last(tmp_path: Path) -> None:
    use = used(a=3, b=4)
    bills = [closed(use)]
    bills.append(corrected(tmp_path, ONE_CONTRACT, bills, use))
    corrected(tmp_path, priced("prices: {gb_in: 2}"), bills, use)
    assert billed(tmp_path, 2) == {
        ("2026-10.2-credit/a", "2026-10.1/a"): Decimal("-5.00"),
        ("2026-10.2/a", "2026-10.1/a"): Decimal("6.00"),
        ("2026-10.2-credit/b", "2026-10/b"): Decimal("-40.00"),
        ("2026-10.2/b", "2026-10/b"): Decimal("8.00"),
    }


def test_other_prices_that_change_no_line_yet_are_those_of_late_records(tmp_path: Path) -> None:
    bills, card = (
        [closed(used(b=1))],
        priced("prices: {gb_in: 10}\nminimum: 5\ntenants: {'a*': {prices: {gb_in: 1}}}"),
    )
    bills.append(corrected(tmp_path, card, bills, used(b=1)))
    assert of_focus(tmp_path) == []
    assert late(bills, NOVEMBER, used(a=9, b=1)) == (Decimal("9.00"),)


def test_a_tenant_without_an_invoice_gets_no_credit_note(tmp_path: Path) -> None:
    corrected(tmp_path, RIGHT, [closed(used(a=3))], used(a=3, late=7))
    assert billed(tmp_path)["2026-10.1/late", ""] == Decimal("7.00")
    assert len(billed(tmp_path)) == 3


def test_corrections_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    use, bills = used(a=1), [closed(used(a=1))]
    for price in range(11, 22):
        bills.append(corrected(tmp_path, priced(f"prices: {{gb_in: {price}}}"), bills, use))
    assert bills[1:] == corrected_months(tmp_path)


def test_a_closed_month_among_corrections_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corrected").mkdir()
    (tmp_path / "corrected" / "2026-10.json").write_bytes(dump(closed(used(a=1))))
    with pytest.raises(ConfigurationError, match=r"2026-10\.json: is not a correction"):
        corrected_months(tmp_path)


@pytest.mark.parametrize(
    ("card", "bills", "said"),
    [
        (RIGHT, [], "it is not closed; write it again"),
        (WRONG, [closed(used(a=3))], "2026-10 needs no correction"),
        (priced("prices: {gb_in: 1}", "USD"), [closed(used(a=3))], "it was billed in EUR"),
    ],
)
def test_what_cannot_be_corrected_is_refused(
    card: RateCard, bills: list[Closed], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        corrected(tmp_path, card, bills, used(a=3))
    assert list(tmp_path.iterdir()) == []


def test_prices_from_a_day_on_are_a_correction_too(tmp_path: Path) -> None:
    card = priced("prices: {gb_in: 10}\nchanges: [{valid_from: 2026-10-16, prices: {gb_in: 1}}]")
    days = tuple(Day(date(2026, 10, it), GB, 0, 0, 0, 0, ALL) for it in (15, 16))
    use = MonthlyUse(used(a=2).used, {"a": Use(ALL, days)}, ALL)
    corrected(tmp_path, card, [closed(use)], use)
    assert billed(tmp_path)["2026-10.1/a", "2026-10/a"] == Decimal("11.00")
    (_, *lines) = csv.reader((tmp_path / "2026-10.1/invoice-a.csv").open())
    assert [(it[-3], it[-2]) for it in lines] == [
        ("2026-10-01", "2026-10-15"),
        ("2026-10-16", "2026-10-31"),
        ("", ""),
    ]


# -- late records ------------------------------------------------------------------------------


def late(bills: list[Closed], month: Month, use: MonthlyUse) -> tuple[Decimal, ...]:
    found = adjustments(month, bills, lambda it: use if it == OCTOBER else used(), 3)
    return tuple(it.amount for it in found.get(month, ()))


def test_late_records_are_compared_with_the_corrected_bill(tmp_path: Path) -> None:
    use = used(a=30)
    bills = [closed(use)]
    bills.append(corrected(tmp_path, RIGHT, bills, use))
    assert late(bills, NOVEMBER, use) == ()
    assert late(bills, NOVEMBER, used(a=32)) == (Decimal("2.00"),)


def test_a_credit_note_reverses_what_later_invoices_adjusted(tmp_path: Path) -> None:
    before, now = used(a=30), used(a=32)
    adjusted = adjustments(NOVEMBER, [closed(before)], lambda _: now, 3)[NOVEMBER]
    bills = [closed(before), closed(used(), month=NOVEMBER)._replace(adjustments=adjusted)]
    bills.append(corrected(tmp_path, RIGHT, bills, now))
    assert billed(tmp_path) == {
        ("2026-10.1-credit/a", "2026-10/a"): Decimal("-320.00"),
        ("2026-10.1/a", "2026-10/a"): Decimal("32.00"),
    }
    assert sum(Decimal(it["BilledCost"]) for it in of_focus(tmp_path)) == -288
    assert (
        "Adjustments on later invoices" in (tmp_path / "2026-10.1/credit-note-a.html").read_text()
    )
    assert late(bills, DECEMBER, now) == ()
    assert late(bills, DECEMBER, used(a=33)) == (Decimal("1.00"),)


def test_a_tenant_that_has_adjustments_alone_gets_an_invoice(tmp_path: Path) -> None:
    found = adjustments(NOVEMBER, [closed(used(a=30))], lambda _: used(a=30, b=1), 3)[NOVEMBER]
    write(tmp_path, NOVEMBER, WRONG, used(), found)
    (_, *lines) = csv.reader((tmp_path / "2026-11/invoice-b.csv").open())
    assert [it[3] for it in lines] == ["adjustment", "total"]


def test_adjustments_go_back_as_far_as_the_rate_card_says() -> None:
    months = [Month(2026, it) for it in range(1, 7)]
    bills = [closed(used(a=1), month=it) for it in months]
    for back, first in ((0, None), (1, 6), (3, 4), (120, 1)):
        found = adjustments(Month(2026, 7), bills, lambda _: used(a=2), back)
        seen = [it.original.month for it in found.get(Month(2026, 7), ())]
        assert seen == ([] if first is None else list(range(first, 7)))
    assert WRONG.adjusted_months == 3


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["correct", "late"]),
        st.sampled_from([WRONG, RIGHT, ONE_CONTRACT]),
        st.fixed_dictionaries({it: st.integers(0, 20) for it in ("a", "b", "nobody")}),
    ),
    max_size=6,
)


@given(STEPS)
def test_all_that_a_tenant_gets_sums_to_its_last_bill(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, RateCard, dict[str, int]]],
) -> None:
    """Whatever order corrections and late records come in."""
    folder, card, use = tmp_path_factory.mktemp("invoices"), WRONG, used(a=7, nobody=1)
    months, corrections, paid = [closed(use)], list[Closed](), defaultdict[str, Decimal](Decimal)
    for line in months[0].lines:
        paid[line.tenant] += line.amount
    month = NOVEMBER
    for kind, other, gigabytes in steps:
        use = used(**gigabytes)
        if kind == "correct":
            try:
                corrections.append(corrected(folder, other, [*months, *corrections], use))
            except ConfigurationError:  # stays as it is
                pass
            else:
                for row in of_focus(folder, len(corrections)):
                    paid[row["SubAccountId"]] += Decimal(row["BilledCost"])
            card = other
        else:
            found = adjustments(month, [*months, *corrections], dict.fromkeys(MONTHS, use).get, 120)
            own = tuple(it for it in found.get(month, ()) if it.original == OCTOBER)
            months.append(Closed(month, WRONG, (), own))
            for adjustment in own:
                paid[adjustment.tenant] += adjustment.amount
            month = month.next()
    owed = charge(card, use.used)
    totals = {it.tenant: it.total for it in (*owed.statements, owed.unallocated)}
    assert {it: paid[it] for it in paid if paid[it]} == {it: n for it, n in totals.items() if n}
    assert sum(map(Fraction, paid.values())) == owed.total
