"""What late records change of a closed month."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.billing.adjustments import Adjustment, adjust
from gateway.pipeline.billing.amounts import MINIMUM, Used, charge
from gateway.pipeline.billing.money import Currency
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, read

GB = 10**9
EUR = Currency("EUR", 2)
OCTOBER, NOVEMBER, DECEMBER = Month(2026, 10), Month(2026, 11), Month(2026, 12)

PRICES = read(
    "version: 1\ncurrency: EUR\nminimum: 2\n"
    "prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.333}]}, connection_hour: 0.7}\n",
    Path("prices.yaml"),
)
CHANGING = read(
    "version: 1\ncurrency: EUR\nminimum: 2\n"
    "prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.333}]}, connection_hour: 0.7}\n"
    "changes:\n  - valid_from: 2026-10-11\n"
    "    prices: {gb_in: {price: 2, tiers: [{above: 5, price: 1}]}}\n",
    Path("prices.yaml"),
)
BILL = read(
    "version: 1\ncurrency: EUR\n"
    "bill: {amount: 99.99, split: proportional, by: {bytes_in: 1, connection_ms: 1}}\n",
    Path("prices.yaml"),
)


def made(
    before: list[Used],
    after: list[Used],
    earlier: tuple[Adjustment, ...] = (),
    card: RateCard = PRICES,
) -> tuple[Adjustment, ...]:
    closed, now = charge(card, before), charge(card, after)
    return adjust(EUR, (OCTOBER, NOVEMBER), closed.lines(), now.lines(), earlier)


def test_nothing_is_adjusted_if_nothing_changed() -> None:
    rows = [Used("a", bytes_in=12 * GB), Used("b", connection_ms=7)]
    assert made(rows, rows) == ()


def test_more_use_is_a_line_that_refers_to_its_month() -> None:
    (found,) = made([Used("a", bytes_in=5 * GB)], [Used("a", bytes_in=7 * GB)])
    assert (found.tenant, found.charge, found.tier) == ("a", "bytes_in", 0)
    assert (found.original, found.present) == (OCTOBER, NOVEMBER)
    assert (str(found.quantity), found.unit) == ("2", "GB")
    assert [str(it) for it in (found.before, found.after, found.amount)] == ["5.00", "7.00", "2.00"]


def test_each_tier_is_adjusted_by_itself() -> None:
    found = made([Used("a", bytes_in=9 * GB)], [Used("a", bytes_in=13 * GB)])
    assert [(it.tier, str(it.quantity), str(it.amount)) for it in found] == [
        (0, "1", "1.00"),
        (1, "3", "1.00"),
    ]


def test_a_minimum_that_is_no_longer_due_is_given_back() -> None:
    found = made([Used("a", bytes_in=GB)], [Used("a", bytes_in=5 * GB)])
    assert {it.charge: str(it.amount) for it in found} == {"bytes_in": "4.00", MINIMUM: "-1.00"}


def test_a_tenant_that_was_not_there_is_adjusted_from_nothing() -> None:
    (found,) = made([], [Used("late", bytes_in=5 * GB)])
    assert (str(found.before), str(found.after)) == ("0.00", "5.00")


def test_late_use_has_the_price_of_its_day_and_moves_tiers_after_it() -> None:
    early, late = (Used("a", bytes_in=4 * GB, day=date(2026, 10, it)) for it in (1, 31))
    found = made([early, late], [early, early, late], card=CHANGING)
    assert [(it.tier, it.since, str(it.quantity), str(it.amount)) for it in found] == [
        (0, None, "4", "4.00"),
        (0, date(2026, 10, 11), "-1", "-2.00"),
        (1, date(2026, 10, 11), "1", "1.00"),
    ]


def test_a_second_adjustment_has_only_what_is_new() -> None:
    before, later = [Used("a", bytes_in=5 * GB)], [Used("a", bytes_in=7 * GB)]
    first = made(before, later)
    assert made(before, later, first) == ()
    (second,) = made(before, [Used("a", bytes_in=8 * GB)], first)
    assert [str(it) for it in (second.before, second.after, second.amount)] == [
        "7.00",
        "8.00",
        "1.00",
    ]


def test_adjustments_of_other_months_do_not_count() -> None:
    before, later = [Used("a", bytes_in=5 * GB)], [Used("a", bytes_in=7 * GB)]
    other = tuple(it._replace(original=Month(2026, 9)) for it in made(before, later))
    assert made(before, later, other) == made(before, later)


@pytest.mark.parametrize("present", [OCTOBER, Month(2026, 9), Month(2025, 12)])
def test_a_month_is_never_adjusted_in_itself_or_before(present: Month) -> None:
    with pytest.raises(ValueError, match="in a later month"):
        adjust(EUR, (OCTOBER, present), (), ())


ROWS = st.lists(
    st.builds(
        Used,
        st.sampled_from(["", "a", "b", "c"]),
        st.integers(0, 10**13),
        connection_ms=st.integers(0, 10**12),
        day=st.dates(date(2026, 10, 1), date(2026, 10, 31)),
    ),
    max_size=6,
)


@given(ROWS, ROWS, ROWS, st.sampled_from([PRICES, CHANGING, BILL]))
def test_adjustments_sum_to_the_difference(
    before: list[Used], late: list[Used], later: list[Used], card: RateCard
) -> None:
    first = made(before, [*before, *late], (), card)
    second = made(before, [*before, *late, *later], first, card)
    whole = charge(card, [*before, *late, *later])
    billed = charge(card, before).total
    adjusted = sum((Fraction(it.amount) for it in (*first, *second)), Fraction(0))
    assert adjusted == Fraction(whole.total) - Fraction(billed)
    assert made(before, [*before, *late, *later], (*first, *second), card) == ()
    for tenant in ("a", "b", "c"):
        own = [it.amount for it in (*first, *second) if it.tenant == tenant]
        old, new = charge(card, before).of(tenant), whole.of(tenant)
        difference = (new.total if new else Decimal(0)) - (old.total if old else Decimal(0))
        assert sum(own, Decimal(0)) == difference
    assert all(it.amount and it.after - it.before == it.amount for it in (*first, *second))
