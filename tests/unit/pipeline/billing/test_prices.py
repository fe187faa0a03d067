"""What a rate card may say, and what is said about mistakes in it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, load, read
from tests.support.faults import assert_none

PATH = Path("prices.yaml")

PRICES = """\
version: 1
currency: EUR
issuer: Example
prices:
  gb_in: 0.09
  gb_out: {price: 0.12, tiers: [{above: 1000, price: 0.08}]}
minimum: 5
tenants:
  acme: {prices: {gb_in: 0.05}}
  "lab-*": {minimum: 0}
  "lab-big-*": {prices: {gb_in: 1}}
"""

BILL = """\
version: 1
currency: EUR
bill: {amount: 1000, split: fixed, shares: {acme: 60%, globex: 12.5%}}
"""


def card(text: str) -> RateCard:
    return read(text, PATH)


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        card(text)
    return str(caught.value).splitlines()


def of_price(price: str) -> list[str]:
    return mistakes(f"version: 1\ncurrency: EUR\nprices:\n  gb_in: {price}\n")


def test_a_card_has_exact_decimals() -> None:
    found = card(PRICES)
    price = found.list_price("gb_in")
    assert price is not None
    assert price.price == Decimal("0.09")
    assert found.currency == ("EUR", 2)


def test_no_digit_of_a_price_is_lost_in_a_binary_fraction() -> None:
    found = card("version: 1\ncurrency: EUR\nprices: {gb_in: 123456789012.000000000001}\n")
    price = found.list_price("gb_in")
    assert price is not None
    assert str(price.price) == "123456789012.000000000001"


def test_a_price_of_an_environment_variable_is_exact_too(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("version: 1\ncurrency: EUR\nprices: {gb_in: '${PRICE}'}\n")
    price = load(path, {"PRICE": "0.1"}).list_price("gb_in")
    assert price is not None
    assert price.price == Decimal("0.1")


def test_merged_and_shared_parts_of_a_file_are_read_with_their_digits() -> None:
    found = card(
        "version: 1\ncurrency: EUR\nprices: &list {gb_in: 0.3, gb_out: &out 0.7}\n"
        "tenants: {a: {prices: {<<: *list, gb_in: 0.1}}, b: {prices: {gb_in: *out}}}\n"
    )
    of_a, of_b = found.terms("a").prices, found.terms("b").prices
    assert [of_a["gb_in"].price, of_a["gb_out"].price] == [Decimal("0.1"), Decimal("0.7")]
    assert [of_b["gb_in"].price, of_b["gb_out"].price] == [Decimal("0.7"), Decimal("0.7")]


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ("-0.01", "is negative"),
        (".nan", "is not finite"),
        (".inf", "is not finite"),
        ("-.inf", "is not finite"),
        ("'NaN'", "is not finite"),
        ("010", "begins with a 0"),
        ("0x10", "is not a number in plain digits"),
        ("1_000", "is not a number in plain digits"),
        ("190:20:30", "is not a number in plain digits"),
        ("1.0e+3", "is not a number in plain digits"),
        ("!!float '1e9999999'", "is not a number in plain digits"),
        ("true", "is not a number"),
        ("[1]", "is not a number"),
        ("", "is not a number"),
        ("0.0000000000001", "has more than 12 digits"),
        ("9999999999999", "has more than 12 digits"),
    ],
)
def test_an_impossible_price_is_reported_with_its_line(price: str, said: str) -> None:
    (line,) = of_price(price)
    assert line.startswith("prices.yaml:4: prices.gb_in: ")
    assert said in line


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    (line,) = of_price("9" * 5000)
    assert line.startswith("prices.yaml:4:")


def test_all_mistakes_are_reported_at_once() -> None:
    lines = mistakes(
        "version: 1\ncurrency: EURO\nprices:\n  gb_inn: 1\n  gb_out: -1\n"
        "tenants:\n  a: {minimum: x}\n"
    )
    assert [it.split(": ")[:2] for it in lines] == [
        ["prices.yaml:2", "currency"],
        ["prices.yaml:4", "prices.gb_inn"],
        ["prices.yaml:5", "prices.gb_out"],
        ["prices.yaml:7", "tenants.a.minimum"],
    ]
    assert "did you mean 'gb_in'?" in lines[1]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("version: 1\ncurrency: EUR\n", "prices.yaml:1", "neither prices nor a bill"),
        ("version: 1\ncurrency: EUR\nprices:\n", "prices.yaml:3: prices", "is empty"),
        ("version: 1\ncurrency: EUR\nprices: {}\n", "prices.yaml:3: prices", "has no price"),
        ("version: 2\ncurrency: EUR\nprices: {gb_in: 1}\n", "prices.yaml:1: version", "version"),
        (BILL + "prices: {gb_in: 1}\n", "prices.yaml:3: bill", "stands beside prices"),
        (BILL + "minimum: 5\n", "prices.yaml:4: minimum", "is for unit prices"),
        (BILL + "changes: []\n", "prices.yaml:4: changes", "is for unit prices"),
        (PRICES + "adjusted_months: 121\n", "prices.yaml:12: adjusted_months", "0 to 120"),
        (PRICES + "adjusted_months: -1\n", "prices.yaml:12: adjusted_months", "0 to 120"),
        (BILL.replace("12.5%", "40.1%"), "prices.yaml:3: bill.shares", "more than 100%"),
        (BILL.replace("12.5%", "101%"), "prices.yaml:3: bill.shares.globex", "above 100%"),
        (BILL.replace("12.5%", "0.125"), "prices.yaml:3: bill.shares.globex", "is not a share"),
        (BILL.replace("12.5%", "-1%"), "prices.yaml:3: bill.shares.globex", "is negative"),
        (BILL.replace("globex", "'g*'"), "prices.yaml:3: bill.shares.g*", "one tenant"),
        (BILL.replace("fixed", "even"), "prices.yaml:3: bill.shares", "is for a fixed split"),
        (BILL.replace("fixed", "most"), "prices.yaml:3: bill.split", "is not understood"),
        (BILL.replace("shares", "by"), "prices.yaml:3: bill", "has no shares"),
        (BILL.replace("1000", "10.001"), "prices.yaml:3: bill.amount", "more decimals than EUR"),
        (PRICES.replace("5\n", "5.001\n"), "prices.yaml:7: minimum", "more decimals than EUR"),
        (PRICES + "  acme: {}\n", "prices.yaml:12: tenants.acme", "occurs twice, first in line 9"),
        (PRICES + "  a*b: {}\n", "prices.yaml:12: tenants.a*b", "is not a tenant"),
        (PRICES + "  __other__: {}\n", "prices.yaml:12: tenants.__other__", "nobody's"),
        (PRICES + "  b: {price: 1}\n", "prices.yaml:12: tenants.b.price", "is not a key"),
    ],
)
def test_a_contradiction_is_reported_where_it_is(text: str, place: str, said: str) -> None:
    found = [it for it in mistakes(text) if it.startswith(place) and said in it]
    assert len(found) == 1, mistakes(text)


def test_tiers_must_rise() -> None:
    (line,) = of_price("{price: 1, tiers: [{above: 5, price: 1}, {above: 5, price: 2}]}")
    assert line.startswith("prices.yaml:4: prices.gb_in.tiers: is not in order")


def test_a_weight_is_of_a_figure_that_is_measured() -> None:
    (line,) = mistakes(
        "version: 1\ncurrency: EUR\nbill: {amount: 1, split: proportional, by: {bytes: 1}}\n"
    )
    assert "bill.by.bytes: is not a figure that is measured" in line


def test_a_file_that_refers_to_itself_is_refused() -> None:
    assert mistakes("version: 1\ncurrency: EUR\nprices: &a {gb_in: *a}\n")
    assert mistakes("&a [*a]\n")


def test_the_exact_name_and_then_the_longest_begin_decides() -> None:
    found = card(PRICES)
    minimums = [found.terms(it).minimum for it in ("acme", "lab-1", "lab-big-1", "other", "lab")]
    assert minimums == [5, 0, 5, 5, 5]
    prices = [found.terms(it).prices["gb_in"].price for it in ("acme", "lab-1", "lab-big-1")]
    assert prices == [Decimal("0.05"), Decimal("0.09"), 1]


def test_an_override_replaces_only_what_it_has() -> None:
    terms = card(PRICES).terms("acme")
    assert terms.prices["gb_out"].tiers[0].price == Decimal("0.08")
    assert terms.minimum == 5


def test_each_field_of_a_card_is_described() -> None:
    assert_none(name for name, it in RateCard.model_fields.items() if not it.description)


# -- changes -----------------------------------------------------------------------------------

CHANGES = (
    PRICES
    + """\
changes:
  - {valid_from: 2026-09-16, prices: {gb_in: 0.10}}
  - valid_from: 2026-10-16
    prices: {connection_hour: 1}
    tenants: {acme: {}, lab-1: {prices: {gb_in: 2}}}
  - {valid_from: 2026-11-01, prices: {gb_in: 7}}
"""
)


def prices_of(found: RateCard, tenant: str) -> dict[str, str]:
    return {it: str(price.price) for it, price in found.terms(tenant).prices.items()}


def test_a_change_replaces_the_prices_that_it_has() -> None:
    october = card(CHANGES).of(Month(2026, 10))
    assert [it.valid_from for it in october.changes] == [date(2026, 10, 16)]
    assert prices_of(october, "acme") == {"gb_in": "0.05", "gb_out": "0.12"}
    assert prices_of(october, "x") == {"gb_in": "0.10", "gb_out": "0.12"}
    later = october.changed(october.changes[0])
    both = {"gb_in": "0.10", "gb_out": "0.12", "connection_hour": "1"}
    assert prices_of(later, "acme") == prices_of(later, "x") == both
    assert prices_of(later, "lab-1") == {**both, "gb_in": "2"}
    assert not later.changes
    assert card(CHANGES).on(date(2026, 10, 31)).of(Month(2026, 10)) == later


def test_a_change_on_the_first_day_of_a_month_is_none_within_it() -> None:
    november = card(CHANGES).of(Month(2026, 11))
    assert november.changes == ()
    assert prices_of(november, "x")["gb_in"] == "7"
    assert card(CHANGES).of(Month(2026, 8)) == card(PRICES)


def test_minimum_amounts_stay_when_prices_change() -> None:
    november = card(CHANGES).of(Month(2026, 11))
    minimums = {it: str(november.terms(it).minimum) for it in ("acme", "lab-1", "lab-2", "x")}
    assert minimums == {"acme": "5", "lab-1": "0", "lab-2": "0", "x": "5"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("{prices: {gb_in: 1}}", "valid_from"),
        ("{valid_from: 2026-02-30}", "is not a day"),
        ("{valid_from: 20261016}", "is not a day"),
        ("{valid_from: 2026-W01-1}", "is not a day"),
        ("{valid_from: 2026-10-16T00:00:00Z}", "is not a day"),
        ("{valid_from: 2026-10-16, minimum: 5}", "minimum"),
        ("{valid_from: 2026-10-16, tenants: {acme: {minimum: 5}}}", "minimum"),
    ],
)
def test_a_wrong_change_is_named_with_its_line(change: str, said: str) -> None:
    (line,) = mistakes(f"{PRICES}changes:\n  - {change}\n")
    assert line.startswith("prices.yaml:13: changes[0]")
    assert said in line


def test_changes_are_in_the_order_of_their_days() -> None:
    days = "  - {valid_from: 2026-10-16}\n" * 2
    (line,) = mistakes(f"{PRICES}changes:\n{days}")
    assert line.startswith("prices.yaml:14: changes[1].valid_from: is not after the day")
