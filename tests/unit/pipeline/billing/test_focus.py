"""Lines as columns of FOCUS 1.2."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from gateway.pipeline.billing.adjustments import adjust
from gateway.pipeline.billing.amounts import Used, charge
from gateway.pipeline.billing.focus import COLUMNS, MANDATORY, OWN, Setting, rows, to_csv
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, read

GB = 10**9
MONTHS = OCTOBER, NOVEMBER = Month(2026, 10), Month(2026, 11)

PRICES = read(
    "version: 1\ncurrency: EUR\nissuer: Example\naccount: main\nminimum: 3\n"
    "prices: {gb_in: {price: 1, tiers: [{above: 10, price: 0.333}]}, connection_hour: 0.7}\n"
    "tenants: {a: {prices: {gb_in: 0.5}}}\n",
    Path("prices.yaml"),
)
BILL = read(
    "version: 1\ncurrency: EUR\nbill: {amount: 10, split: proportional, by: {bytes_in: 1}}\n",
    Path("prices.yaml"),
)
USED = [
    Used("a", 20 * GB, connection_ms=1),
    Used("=b", 25 * GB),
    Used("nl\nline", GB),
    Used("", 2 * GB),
]

NUMBERS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
MAY_BE_NULL = ("BillingAccountName", "ChargeClass", "PricingQuantity", "PricingUnit")


def table(card: RateCard, *, for_spreadsheets: bool = False) -> list[dict[str, str]]:
    now = charge(card, USED)
    late = adjust(card.currency, MONTHS, charge(card, USED[1:]).lines(), now.lines())
    setting = Setting(card, NOVEMBER, Fraction(999, 1000))
    text = to_csv(setting, now, late, for_spreadsheets=for_spreadsheets)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def usual(card: RateCard) -> list[dict[str, str]]:
    return [it for it in table(card) if not it["ChargeClass"]]


def product(row: Mapping[str, str], price: str) -> Fraction:
    return Fraction(row[price]) * Fraction(row["PricingQuantity"])


@pytest.mark.parametrize("card", [PRICES, BILL])
def test_mandatory_columns_are_there_and_filled(card: RateCard) -> None:
    found = table(card)
    assert found
    for row in found:
        assert set(MANDATORY) <= set(row)
        assert all(row[it] for it in MANDATORY if it not in MAY_BE_NULL)
        assert set(row) == {*COLUMNS, *OWN}
        assert all(Decimal(row[it]).is_finite() for it in NUMBERS)


def test_columns_of_the_specification_come_first_and_in_order() -> None:
    head = to_csv(Setting(PRICES, NOVEMBER), charge(PRICES, [])).split("\r\n")[0].split(",")
    assert head == [*sorted(COLUMNS), *OWN]
    assert all(it.startswith("x_") for it in OWN)


@pytest.mark.parametrize("card", [PRICES, BILL])
def test_no_column_is_lost(card: RateCard) -> None:
    found = list(rows(Setting(card, NOVEMBER), charge(card, USED)))
    assert found
    assert {key for row in found for key in row} <= {*COLUMNS, *OWN}


@pytest.mark.parametrize("card", [PRICES, BILL])
def test_billed_costs_sum_to_the_whole(card: RateCard) -> None:
    assert sum(Decimal(it["BilledCost"]) for it in usual(card)) == charge(card, USED).total


def test_unit_price_times_quantity_is_the_cost() -> None:
    found = usual(PRICES)
    assert {it["ChargeDescription"] for it in found} >= {"Data in", "Data in, above 10 GB"}
    small = Fraction(1, 10**11)  # milliseconds of hours have no end
    for row in found:
        if row["ListUnitPrice"]:
            assert abs(product(row, "ListUnitPrice") - Fraction(row["ListCost"])) < small
        cost = Fraction(row["ContractedCost"])
        assert abs(product(row, "ContractedUnitPrice") - cost) < small


def test_an_override_has_the_list_cost_beside_it() -> None:
    (row,) = (it for it in usual(PRICES) if (it["SubAccountId"], it["SkuId"]) == ("a", "bytes_in"))
    costs = row["ContractedCost"], row["ListCost"], row["ListUnitPrice"]
    assert costs == ("10.0", "13.33", "0.6665")


def test_a_price_has_the_period_of_its_days_and_an_id_of_its_own() -> None:
    card = read(
        "version: 1\ncurrency: EUR\nprices: {gb_in: 1}\n"
        "changes: [{valid_from: 2026-11-11, prices: {gb_in: 2}}]\n",
        Path("prices.yaml"),
    )
    charges = charge(card, [Used("a", GB, day=date(2026, 11, it)) for it in (10, 11)])
    found = list(csv.DictReader(io.StringIO(to_csv(Setting(card, NOVEMBER), charges))))
    names = ("ChargePeriodStart", "ChargePeriodEnd", "ListUnitPrice", "SkuPriceId")
    assert [tuple(row[it] for it in names) for row in found] == [
        ("2026-11-01T00:00:00Z", "2026-11-11T00:00:00Z", "1.0", "bytes_in/0"),
        ("2026-11-11T00:00:00Z", "2026-12-01T00:00:00Z", "2.0", "bytes_in/0/2026-11-11"),
    ]


def test_numbers_have_a_decimal_in_currencies_without_any() -> None:
    card = read("version: 1\ncurrency: JPY\nprices: {gb_in: 1}\n", Path("prices.yaml"))
    text = to_csv(Setting(card, NOVEMBER), charge(card, [Used("a", 20 * GB)]))
    (row,) = csv.DictReader(io.StringIO(text))
    assert {row[it] for it in (*NUMBERS, "PricingQuantity")} == {"20.0"}


def test_use_has_a_consumed_quantity_and_a_minimum_has_none() -> None:
    found = {(it["SkuId"], it["ChargeCategory"]) for it in usual(PRICES) if it["ConsumedQuantity"]}
    assert found == {("bytes_in", "Usage"), ("connection_ms", "Usage")}
    (minimum,) = (it for it in usual(PRICES) if it["SkuId"] == "minimum")
    assert (minimum["ChargeCategory"], minimum["ConsumedUnit"]) == ("Adjustment", "")


def test_what_is_nobodys_has_no_sub_account() -> None:
    (row,) = (it for it in usual(PRICES) if not it["SubAccountId"])
    assert (row["InvoiceId"], row["SubAccountType"], row["BilledCost"]) == ("2026-11/", "", "2.00")


def test_an_adjustment_is_a_correction_of_its_month() -> None:
    found = [it for it in table(PRICES) if it["ChargeClass"] == "Correction"]
    assert found
    for row in found:
        assert row["ChargePeriodStart"] == "2026-10-01T00:00:00Z"
        assert row["ChargePeriodEnd"] == row["BillingPeriodStart"] == "2026-11-01T00:00:00Z"
        assert (row["PricingQuantity"], row["PricingUnit"]) == ("", "")
        assert row["ChargeDescription"].startswith("Correction of 2026-10: ")


def test_names_are_as_others_have_them_and_harmless_in_spreadsheets() -> None:
    found = {it["SubAccountId"]: it["InvoiceId"] for it in table(PRICES)}
    assert found == {it: f"2026-11/{it}" for it in ("", "a", "=b", "nl\nline")}
    harmless = {it["SubAccountId"] for it in table(PRICES, for_spreadsheets=True)}
    assert harmless == {"a", "'=b", r"nl\nline", ""}


def test_a_part_of_a_bill_says_which_part_it_is() -> None:
    found = {it["SubAccountId"]: it["x_BillShare"] for it in usual(BILL)}
    assert found["nl\nline"] == "0.020833333333"
    assert {it["PricingCategory"] for it in usual(BILL)} == {"Other"}
