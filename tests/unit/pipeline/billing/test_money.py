"""Currencies, months, and how figures are written."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.billing.money import DECIMALS, Currency, currency_of, decimal_text
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.wording import bytes_text, number_text, percent, quantity


@pytest.mark.parametrize(("code", "decimals"), [("JPY", 0), ("EUR", 2), ("KWD", 3), ("CLF", 4)])
def test_a_currency_has_its_decimals(code: str, decimals: int) -> None:
    assert currency_of(code) == (code, decimals)


@pytest.mark.parametrize("code", ["eur", "EURO", "", "XXX"])
def test_other_codes_are_no_currency(code: str) -> None:
    assert currency_of(code) is None
    assert all(len(it) == 3 for it in DECIMALS)


@given(st.integers(-(10**60), 10**60), st.sampled_from([0, 2, 3]))
def test_amounts_keep_all_digits(units: int, decimals: int) -> None:
    currency = Currency("EUR", decimals)
    assert currency.units(currency.amount(units)) == units
    assert currency.total([currency.amount(units), currency.amount(1)]) == currency.amount(
        units + 1
    )


def test_a_part_of_a_cent_is_no_amount() -> None:
    with pytest.raises(ValueError, match="more decimals than EUR, which has 2"):
        Currency("EUR", 2).units(Decimal("0.001"))


@pytest.mark.parametrize(
    ("units", "code", "text"),
    [
        (123456, "EUR", "1,234.56 EUR"),
        (-5, "EUR", "\u22120.05 EUR"),
        (1500, "JPY", "1,500 JPY"),
        (1, "KWD", "0.001 KWD"),
    ],
)
def test_an_amount_is_written_for_readers(units: int, code: str, text: str) -> None:
    currency = currency_of(code)
    assert currency is not None
    assert currency.text(currency.amount(units)) == text


@given(st.fractions(-1000, 1000), st.integers(0, 12))
def test_a_decimal_text_is_near_its_value(value: Fraction, decimals: int) -> None:
    text = decimal_text(value, decimals)
    assert abs(Fraction(text) - value) <= Fraction(1, 2 * 10**decimals)
    assert "e" not in text
    assert text != "-0"


def test_a_month_is_from_its_first_day_to_its_last() -> None:
    month = Month.read("2026-12")
    assert month.next() == Month(2027, 1)
    assert (str(month), month.title) == ("2026-12", "December 2026")
    assert len(Month(2028, 2).days()) == 29
    assert Month(2028, 2).days()[-1] == date(2028, 2, 29)
    assert Month(2026, 11) < month


@pytest.mark.parametrize(
    "text", ["2026-13", "2026-00", "26-01", "2026-1", "9999-01", "", "2026-011"]
)
def test_other_texts_are_no_month(text: str) -> None:
    with pytest.raises(ValueError, match="is not a month"):
        Month.read(text)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Fraction(1), "100 %"),
        (Fraction(999_999, 1_000_000), "99.99 %"),
        (Fraction(1, 1_000_000), "above 0 %"),
        (Fraction(0), "0 %"),
        (None, "not known"),
    ],
)
def test_a_part_is_whole_only_if_nothing_is_missing(part: Fraction | None, text: str) -> None:
    assert percent(part) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (999_999, "1 MB"),
        (56_780_000_000, "56.8 GB"),
        (10**24, "1000000 EB"),
    ],
)
def test_bytes_have_three_digits(number: int, text: str) -> None:
    assert bytes_text(number) == text


def test_numbers_are_short() -> None:
    assert number_text(1_500_000) == "1.5 M"
    assert number_text(7) == "7"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(12345678, 10), "1,234,567.8"),
        (Fraction(1, 10**9), "below 0.000001"),
        (Fraction(0), "0"),
        (Fraction(-5, 2), "\u22122.5"),
    ],
)
def test_a_quantity_that_is_not_zero_does_not_look_like_it(value: Fraction, text: str) -> None:
    assert quantity(value) == text
