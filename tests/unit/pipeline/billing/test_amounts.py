"""Amounts of tenants: exact, complete, and the same in whatever order rows come."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import fields
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.amounts import (
    LEFT,
    MINIMUM,
    MOST,
    SHARE,
    UNALLOCATED,
    Charges,
    Line,
    Used,
    charge,
)
from gateway.pipeline.billing.meters import BY_FIGURE
from gateway.pipeline.billing.money import apportion
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, build, read

GB = 10**9
HOUR = 3_600_000


def priced(text: str, currency: str = "EUR") -> RateCard:
    return read(f"version: 1\ncurrency: {currency}\n{text}\n", Path("prices.yaml"))


def bill(split: str, amount: str = "100") -> RateCard:
    return priced(f"bill: {{amount: {amount}, split: {split}}}")


def due(charges: Charges) -> dict[str, str]:
    found = {it.tenant: str(it.total) for it in charges.statements}
    return found | {UNALLOCATED: str(charges.unallocated.total)}


def lines(charges: Charges, tenant: str) -> list[tuple[str, str]]:
    statement = charges.unallocated if tenant == UNALLOCATED else charges.of(tenant)
    assert statement is not None
    return [(it.charge, str(it.amount)) for it in statement.lines]


def test_each_meter_has_a_field() -> None:
    assert set(BY_FIGURE) < {it.name for it in fields(Used)}


def test_a_tenant_owes_quantity_times_price() -> None:
    card = priced("prices: {gb_in: 0.09, connection_hour: 0.01, million_messages_out: 2}")
    used = Used("acme", bytes_in=2 * GB, connection_ms=90 * HOUR, msgs_out=500_000)
    found = charge(card, [used])
    assert lines(found, "acme") == [
        ("bytes_in", "0.18"),
        ("msgs_out", "1.00"),
        ("connection_ms", "0.90"),
    ]
    assert due(found) == {"acme": "2.08", UNALLOCATED: "0.00"}


def test_a_gb_has_a_thousand_million_bytes() -> None:
    found = charge(priced("prices: {gb_in: 1}"), [Used("a", bytes_in=2**30)])
    (line,) = found.lines()
    assert line.quantity == Fraction(2**30, 10**9)
    assert line.amount == Decimal("1.07")


def test_rows_of_a_tenant_are_added_up_before_rounding() -> None:
    row = Used("a", bytes_in=4_000_000)  # 0.004 EUR
    assert due(charge(priced("prices: {gb_in: 1}"), [row] * 10))["a"] == "0.04"


def test_lines_are_rounded_to_the_total_and_not_each_by_itself() -> None:
    card = priced("prices: {gb_in: 0.004, gb_out: 0.004, connection_hour: 0.004}")
    used = Used("a", bytes_in=GB, bytes_out=GB, connection_ms=HOUR)
    found = charge(card, [used])
    assert due(found)["a"] == "0.01"
    assert sorted(amount for _, amount in lines(found, "a")) == ["0.00", "0.00", "0.01"]


def test_each_tier_has_a_line_and_sums_to_the_quantity() -> None:
    card = priced(
        "prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.5}, {above: 20, price: 0.1}]}}"
    )
    found = list(charge(card, [Used("a", bytes_in=25 * GB)]).lines())
    assert [(it.tier, str(it.quantity), str(it.amount), str(it.above)) for it in found] == [
        (0, "10", "10.00", "0"),
        (1, "10", "5.00", "10"),
        (2, "5", "0.50", "20"),
    ]


def test_a_quantity_at_the_end_of_a_tier_does_not_reach_the_next() -> None:
    card = priced("prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.5}]}}")
    assert [it.tier for it in charge(card, [Used("a", bytes_in=10 * GB)]).lines()] == [0]


def test_an_override_shows_what_the_list_would_cost() -> None:
    card = priced("prices: {gb_in: 1}\ntenants: {a: {prices: {gb_in: 0.5}}}")
    (line,) = charge(card, [Used("a", bytes_in=4 * GB)]).lines()
    assert [str(it) for it in (line.exact, line.listed, line.list_price)] == ["2", "4", "1"]


def test_the_minimum_is_a_line_of_its_own() -> None:
    card = priced("prices: {gb_in: 1}\nminimum: 5")
    found = charge(card, [Used("a", bytes_in=2 * GB), Used("b", bytes_in=7 * GB)])
    assert lines(found, "a") == [("bytes_in", "2.00"), (MINIMUM, "3.00")]
    assert lines(found, "b") == [("bytes_in", "7.00")]


def test_a_tenant_that_is_named_owes_its_minimum_without_use() -> None:
    card = priced("prices: {gb_in: 1}\nminimum: 5\ntenants: {a: {minimum: 9}, 'b-*': {}}")
    assert due(charge(card, [])) == {"a": "9.00", UNALLOCATED: "0.00"}


@pytest.mark.parametrize("nobody", ["", "__other__"])
def test_use_without_a_tenant_is_unallocated_at_list_prices(nobody: str) -> None:
    card = priced("prices: {gb_in: 1}\nminimum: 5\ntenants: {'*': {prices: {gb_in: 0.1}}}")
    found = charge(card, [Used(nobody, bytes_in=2 * GB), Used("a", bytes_in=100 * GB)])
    assert due(found) == {"a": "10.00", UNALLOCATED: "2.00"}
    assert found.total == 12


def test_an_operation_without_a_price_is_reported_and_not_zero() -> None:
    card = priced("prices: {gb_in: 1}")
    used = Used("a", bytes_in=GB, msgs_in=7, bytes_out=GB, msgs_out=3, others=(("txn", 2),))
    statement = charge(card, [used]).of("a")
    assert statement is not None
    assert [(it.operation, it.figure) for it in statement.unpriced] == [
        ("deliver", "bytes_out"),
        ("deliver", "msgs_out"),
        ("txn", "txn"),
    ]
    assert statement.total == 1


def test_an_operation_whose_price_is_zero_is_free_and_has_a_line() -> None:
    found = charge(priced("prices: {gb_in: 0}"), [Used("a", bytes_in=GB)])
    assert lines(found, "a") == [("bytes_in", "0.00")]
    assert [it.unpriced for it in found.statements] == [()]


def test_a_tenant_whose_use_has_no_price_has_a_statement() -> None:
    found = charge(priced("prices: {gb_in: 1}"), [Used("a", bytes_out=GB)])
    assert due(found)["a"] == "0.00"


@pytest.mark.parametrize("broken", [-1, MOST + 1])
def test_an_impossible_row_is_refused_and_told(broken: int) -> None:
    row = Used("a", bytes_in=broken)
    found = charge(priced("prices: {gb_in: 1}"), [row, Used("b", bytes_in=GB)])
    assert found.refused == (row,)
    assert due(found) == {"b": "1.00", UNALLOCATED: "0.00"}


def test_a_bill_is_split_by_use() -> None:
    card = bill("proportional, by: {bytes_in: 3, connection_ms: 1}")
    found = charge(
        card,
        [Used("a", bytes_in=2, connection_ms=1), Used("b", bytes_in=1), Used("", bytes_in=1)],
    )
    assert due(found) == {"a": "62.50", "b": "18.75", UNALLOCATED: "18.75"}


def test_the_part_of_a_figure_that_nobody_used_is_unallocated() -> None:
    card = bill("proportional, by: {bytes_in: 1, stored_byte_hours: 1}")
    found = charge(card, [Used("a", bytes_in=5)])
    assert due(found) == {"a": "50.00", UNALLOCATED: "50.00"}
    assert lines(found, UNALLOCATED) == [(LEFT, "50.00")]


def test_an_even_split_is_among_those_that_used_something() -> None:
    rows = [Used("a", bytes_in=1), Used("b", msgs_out=9), Used("c"), Used("", bytes_in=9)]
    found = charge(bill("even", "0.03"), rows)
    assert due(found) == {"a": "0.02", "b": "0.01", UNALLOCATED: "0.00"}


def test_a_bill_that_nobody_used_is_unallocated() -> None:
    assert due(charge(bill("even"), [])) == {UNALLOCATED: "100.00"}


def test_fixed_shares_leave_the_rest() -> None:
    found = charge(bill("fixed, shares: {a: 33.3%, b: 50%}"), [Used("c", bytes_in=1)])
    assert due(found) == {"a": "33.30", "b": "50.00", "c": "0.00", UNALLOCATED: "16.70"}
    assert lines(found, "a") == [(SHARE, "33.30")]


# Properties.

QUANTITIES = st.one_of(st.integers(0, 5), st.integers(0, 10**12), st.integers(0, MOST))
NAMES = st.sampled_from(["", "__other__", "a", "b", "c-1", "c-2", "ä\n"])
ROWS = st.lists(st.builds(Used, NAMES, *[QUANTITIES] * len(BY_FIGURE)), max_size=8)
CURRENCIES = st.sampled_from(["JPY", "EUR", "KWD"])
PRICE = st.decimals(0, 10**6, places=6).map(lambda it: format(it, "f"))
WEIGHT = st.decimals("0.001", 1000, places=3).map(lambda it: format(it, "f"))


@st.composite
def prices(draw: st.DrawFn) -> dict[str, Any]:
    above = sorted(draw(st.sets(st.integers(1, 10**6), max_size=3)))
    tiers = [{"above": str(it), "price": draw(PRICE)} for it in above]
    return {
        "prices": {
            "gb_in": {"price": draw(PRICE), "tiers": tiers},
            "million_messages_in": draw(PRICE),
            "connection_hour": draw(PRICE),
        },
        "minimum": str(draw(st.integers(0, 1000))),
        "tenants": {"c-*": {"prices": {"gb_in": draw(PRICE)}}, "d": {"minimum": "3"}},
    }


@st.composite
def bills(draw: st.DrawFn) -> dict[str, Any]:
    split = draw(st.sampled_from(["proportional", "even", "fixed"]))
    found: dict[str, Any] = {"amount": str(draw(st.integers(0, 10**9))), "split": split}
    if split == "proportional":
        keys = st.sampled_from(sorted(BY_FIGURE))
        found["by"] = draw(st.dictionaries(keys, WEIGHT, min_size=1))
    if split == "fixed":
        share = st.decimals(0, 30, places=4).map(lambda it: f"{it:f}%")
        found["shares"] = draw(st.dictionaries(st.sampled_from("abx"), share, min_size=1))
    return {"bill": found}


@st.composite
def cards(draw: st.DrawFn) -> RateCard:
    mode = draw(st.one_of(prices(), bills()))
    card, mistakes = build({"version": 1, "currency": draw(CURRENCIES), **mode})
    assert card is not None, mistakes
    return card


def units(card: RateCard, amount: Decimal) -> int:
    return card.currency.units(amount)  # which raises for a part of a unit


@given(cards(), ROWS)
def test_parts_sum_to_the_whole(card: RateCard, rows: list[Used]) -> None:
    found = charge(card, rows)
    statements = (*found.statements, found.unallocated)
    for it in statements:
        assert units(card, it.total) == sum(units(card, line.amount) for line in it.lines)
    assert units(card, found.total) == sum(units(card, it.total) for it in statements)
    if card.bill is not None:
        assert found.total == card.bill.amount


@given(cards(), ROWS)
def test_nobody_gets_a_negative_part(card: RateCard, rows: list[Used]) -> None:
    for line in charge(card, rows).lines():
        assert line.amount >= 0
        assert line.exact >= 0
        assert line.quantity > 0 or line.charge == SHARE


@given(cards(), ROWS)
def test_rounding_moves_no_line_by_a_whole_unit(card: RateCard, rows: list[Used]) -> None:
    for line in charge(card, rows).lines():
        assert abs(Fraction(line.amount) - line.exact) * card.currency.scale < 1


@given(cards(), ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_is_of_no_effect(
    card: RateCard, rows: list[Used], shuffle: random.Random
) -> None:
    shuffled = list(rows)
    shuffle.shuffle(shuffled)
    assert charge(card, shuffled) == charge(card, rows)


@given(cards(), ROWS)
def test_a_row_may_come_in_pieces(card: RateCard, rows: list[Used]) -> None:
    pieces = [
        Used(row.tenant, **{figure: getattr(row, figure)}) for row in rows for figure in BY_FIGURE
    ]
    assert charge(card, pieces) == charge(card, rows)


@given(bills(), CURRENCIES, st.builds(Used, st.just(""), *[QUANTITIES] * len(BY_FIGURE)))
def test_equal_use_gets_equal_parts_up_to_one_unit(
    mode: dict[str, Any], currency: str, used: Used
) -> None:
    mode["bill"].pop("shares", None)
    if mode["bill"]["split"] == "fixed":
        mode["bill"]["split"] = "even"
    card, _ = build({"version": 1, "currency": currency, **mode})
    assert card is not None
    figures = {it: getattr(used, it) for it in BY_FIGURE}
    found = charge(card, [Used(it, **figures) for it in ("a", "b", "c")])
    parts = [units(card, it.total) for it in found.statements]
    assert max(parts, default=0) - min(parts, default=0) <= 1


@given(prices(), ROWS)
def test_a_tenant_of_unit_prices_owes_the_same_whoever_else_is_there(
    mode: dict[str, Any], rows: list[Used]
) -> None:
    card, _ = build({"version": 1, "currency": "EUR", **mode})
    assert card is not None
    alone = charge(card, [it for it in rows if it.tenant == "a"])
    assert alone.of("a") == charge(card, rows).of("a")


@given(
    st.dictionaries(st.integers(0, 99), st.fractions(0, 50, max_denominator=97), min_size=1),
)
def test_units_are_apportioned_to_floors_and_what_is_left(parts: dict[int, Fraction]) -> None:
    whole = round(sum(parts.values()))
    found = apportion(whole, parts)
    assert sum(found.values()) == whole
    rest = Counter(found[it] - parts[it].numerator // parts[it].denominator for it in parts)
    assert set(rest) <= {0, 1}
    assert all(found[it] == part for it, part in parts.items() if part.denominator == 1)


def test_the_largest_remainder_is_first_to_be_rounded_up() -> None:
    parts = {"a": Fraction("1.2"), "b": Fraction("1.5"), "c": Fraction("1.3")}
    assert apportion(4, parts) == {"a": 1, "b": 2, "c": 1}


def test_of_equal_remainders_the_smaller_key_is_first_in_whatever_order() -> None:
    third = Fraction(1, 3)
    for order in permutations("abc"):
        assert apportion(1, dict.fromkeys(order, third)) == {"a": 1, "b": 0, "c": 0}


@pytest.mark.parametrize("whole", [-1, 3])
def test_what_does_not_sum_to_the_whole_is_not_apportioned(whole: int) -> None:
    with pytest.raises(ValueError, match="do not sum"):
        apportion(whole, {"a": Fraction(1, 2), "b": Fraction(1, 2)})


def test_lines_are_values() -> None:
    found = charge(priced("prices: {gb_in: 1}"), [Used("a", bytes_in=GB)])
    assert all(isinstance(it, Line) for it in found.lines())
    assert len({*found.lines()}) == 1


# -- prices that change within the month -------------------------------------------------------

CHANGING = "prices: {gb_in: 1}\nchanges: [{valid_from: 2026-10-16, prices: {gb_in: 2}}]"


def on(day: int, tenant: str = "a", gigabytes: int = 1, connection_ms: int = 0) -> Used:
    bytes_in, october = gigabytes * GB, date(2026, 10, day)
    return Used(tenant, bytes_in, connection_ms=connection_ms, day=october)


def periods(charges: Charges) -> list[tuple[str, str, str]]:
    return [(str(it.quantity), str(it.amount), f"{it.since}..{it.until}") for it in charges.lines()]


def test_use_before_a_change_has_the_earlier_price() -> None:
    found = charge(priced(CHANGING), [on(15, gigabytes=3), on(16, gigabytes=5), on(1), on(31)])
    assert periods(found) == [
        ("4", "4.00", "None..2026-10-16"),
        ("6", "12.00", "2026-10-16..None"),
    ]
    assert due(found)["a"] == "16.00"


def test_steps_of_tiers_run_through_the_month() -> None:
    """8 GB before the change leave 2 GB of the first tier for what comes after it."""
    tiers = "tiers: [{above: 10, price: %s}]"
    card = priced(
        f"prices: {{gb_in: {{price: 1, {tiers % 0.5}}}}}\nchanges:\n"
        f"  - {{valid_from: 2026-10-16, prices: {{gb_in: {{price: 2, {tiers % 0.1}}}}}}}"
    )
    found = charge(card, [on(2, gigabytes=8), on(20, gigabytes=5)])
    assert [(it.tier, str(it.quantity), str(it.amount)) for it in found.lines()] == [
        (0, "8", "8.00"),
        (0, "2", "4.00"),
        (1, "3", "0.30"),
    ]


def test_a_price_that_a_change_does_not_have_has_one_line() -> None:
    card = priced(CHANGING.replace("gb_in: 1", "gb_in: 1, gb_out: 1"))
    rows = [Used("a", bytes_out=GB, day=date(2026, 10, it)) for it in (1, 31)]
    assert periods(charge(card, rows)) == [("2", "2.00", "None..None")]


def test_a_contract_ends_and_begins_with_a_change() -> None:
    card = priced(
        "prices: {gb_in: 1}\ntenants: {a: {prices: {gb_in: 0.5}}}\nchanges:\n"
        "  - {valid_from: 2026-10-16, tenants: {a: {}, b: {prices: {gb_in: 0.1}}}}"
    )
    found = charge(card, [on(it, tenant, 10) for it in (1, 16) for tenant in ("a", "b", "c")])
    assert due(found) == {"a": "15.00", "b": "11.00", "c": "20.00", UNALLOCATED: "0.00"}
    assert [len(it.lines) for it in found.statements] == [2, 2, 1]


def test_a_minimum_is_of_the_whole_month() -> None:
    found = charge(priced(CHANGING + "\nminimum: 5"), [on(1), on(16)])
    assert lines(found, "a") == [("bytes_in", "1.00"), ("bytes_in", "2.00"), (MINIMUM, "2.00")]


def test_use_before_the_first_price_is_reported_as_unpriced() -> None:
    card = priced(CHANGING.replace("prices: {gb_in: 2}", "prices: {connection_hour: 1}"))
    rows = [on(it, connection_ms=HOUR) for it in (15, 16)]
    statement = charge(card, rows).of("a")
    assert statement is not None
    assert [(it.charge, str(it.amount)) for it in statement.lines] == [
        ("bytes_in", "2.00"),
        ("connection_ms", "1.00"),
    ]
    assert [(it.figure, str(it.quantity)) for it in statement.unpriced] == [("connection_ms", "1")]


def test_use_without_a_day_is_refused_only_where_its_price_changes() -> None:
    stored = Used("a", stored_byte_hours=GB)
    card = priced(CHANGING.replace("gb_in: 1", "gb_in: 1, stored_gb_hour: 3"))
    assert due(charge(card, [on(1), on(16), stored]))["a"] == "6.00"
    with pytest.raises(ConfigurationError, match="price gb_in changes on 2026-10-16, and not all"):
        charge(card, [on(1), Used("a", bytes_in=1)])


DAILY = st.lists(
    st.builds(
        Used,
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 10**12),
        connection_ms=st.integers(0, 10**10),
        day=st.dates(date(2026, 10, 1), date(2026, 10, 31)),
    ),
    max_size=12,
)
TIERED = (
    "prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.333}]}, connection_hour: 0.7}\n"
    "minimum: 2\ntenants: {b: {prices: {gb_in: 0.5}}}\n"
)


@given(DAILY, st.dates(date(2026, 9, 1), date(2026, 11, 1)))
def test_a_change_that_changes_no_price_changes_no_line(rows: list[Used], day: date) -> None:
    same = f"changes: [{{valid_from: {day}, prices: {{connection_hour: 0.70}}}}]"
    card = priced(TIERED + same).of(Month(2026, 10))
    assert charge(card, rows) == charge(priced(TIERED), rows)


@given(DAILY, st.dates(date(2026, 10, 2), date(2026, 10, 31)))
def test_the_quantities_of_all_periods_sum_to_those_of_the_month(
    rows: list[Used], day: date
) -> None:
    dearer = TIERED.splitlines()[0].replace("price: 1,", "price: 1.000000000001,")
    card = priced(f"{TIERED}changes: [{{valid_from: {day}, {dearer}}}]")
    whole, parts = [defaultdict[tuple[str, str, int], Fraction](Fraction) for _ in range(2)]
    for found, charges in ((whole, charge(priced(TIERED), rows)), (parts, charge(card, rows))):
        for it in charges.lines():
            if it.charge != MINIMUM:
                found[it.tenant, it.charge, it.tier] += it.quantity
    assert parts == whole
    assert charge(card, rows[::-1]) == charge(card, rows)
