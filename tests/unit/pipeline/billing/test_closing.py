"""A closed month is read back as it was written, or refused."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError
from gateway.pipeline.billing.adjustments import adjust
from gateway.pipeline.billing.amounts import MOST, Used, charge
from gateway.pipeline.billing.closing import Closed, Correction, dump, load
from gateway.pipeline.billing.months import Month
from gateway.pipeline.billing.prices import RateCard, read

OCTOBER = Month(2026, 10)

CARDS = [
    read(f"version: 1\ncurrency: KWD\n{text}", Path("prices.yaml"))
    for text in (
        "prices: {gb_in: {price: 0.000000000001, tiers: [{above: 0.5, price: 7}]}}\nnote: x",
        "prices: {connection_hour: 0.7}\ntenants: {a: {minimum: 0.001}, 'b*': {minimum: 1}}",
        "bill: {amount: 10, split: proportional, by: {bytes_in: 1, connection_ms: 0.5}}",
        "bill: {amount: 10, split: fixed, shares: {a: 33.3%}}",
        "bill: {amount: 10, split: even}",
        "prices: {gb_in: 1}\nchanges: [{valid_from: 2026-10-02, prices: {gb_in: 2}}]",
    )
]
ROWS = [
    Used("a", MOST, connection_ms=7, day=date(2026, 10, 1)),
    Used("\u202e\n", 5, connection_ms=1, day=date(2026, 10, 2)),
    Used("", 3, day=date(2026, 10, 3)),
]


def closed_with(card: RateCard) -> Closed:
    """Return the month by a rate card."""
    return Closed(OCTOBER, card, tuple(charge(card, ROWS).lines()))


@pytest.mark.parametrize("card", CARDS)
def test_a_closed_month_is_read_back_as_it_was(card: RateCard) -> None:
    closed = closed_with(card)
    assert closed.lines
    data = dump(closed)
    found = load(data, "closed.json")
    assert found == closed
    assert dump(found) == data


def test_adjustments_that_were_billed_are_read_back() -> None:
    before, now = (
        charge(CARDS[1], rows).lines()
        for rows in (ROWS, [*ROWS, Used("a", 0, 0, connection_ms=9**9)])
    )
    months = Month(2026, 9), OCTOBER
    adjusted = adjust(CARDS[1].currency, months, before, now)
    assert adjusted
    closed = closed_with(CARDS[1])._replace(adjustments=adjusted)
    assert load(dump(closed), "closed.json") == closed


def test_a_correction_is_read_back() -> None:
    (change, *_) = adjust(
        CARDS[1].currency, (OCTOBER, OCTOBER.next()), (), charge(CARDS[1], ROWS).lines()
    )
    correction = Correction(1, date(2026, 12, 4), "wrong price", ("a", ""), (change,))
    closed = closed_with(CARDS[1])._replace(correction=correction)
    assert load(dump(closed), "corrected.json") == closed


def test_a_file_of_before_prices_could_change_is_read() -> None:
    """Its lines had no days of their prices."""
    data = json.loads(dump(closed_with(CARDS[1])))
    del data["correction"]
    data["lines"] = [it[:12] for it in data["lines"]]
    assert load(json.dumps(data).encode(), "closed.json") == closed_with(CARDS[1])


def test_no_number_of_money_is_a_float_in_the_file() -> None:
    data = dump(closed_with(CARDS[0]))
    assert b'"0.000000000001"' in data
    assert b"e-" not in data


GOOD = dump(closed_with(CARDS[1]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        GOOD[:-20],
        GOOD.replace(b"2026-10", b"2026-99"),
        GOOD.replace(b'"v":1', b'"v":2'),
        GOOD.replace(b'"KWD"', b'"XXX"'),
        GOOD.replace(b'"0.001"', b'"NaN"'),
        GOOD.replace(b'"0.001"', b'"0.0001"'),
        GOOD.replace(b'"0.000"', b'"1e999999999"'),
        GOOD.replace(b'"0.000"', b'"-Infinity"'),
        GOOD.replace(b"7/3600000", b"7/0"),
        GOOD.replace(b"7/3600000", b"7/" + b"9" * 5000),
        GOOD.replace(b'"lines"', b'"line"'),
    ],
)
def test_another_file_is_refused_with_its_name(data: bytes) -> None:
    assert data != GOOD
    with pytest.raises(ConfigurationError, match=r"^closed\.json: "):
        load(data, "closed.json")


@given(st.binary(max_size=60), st.integers(0, len(GOOD)))
def test_a_damaged_file_is_refused_or_read(junk: bytes, at: int) -> None:
    try:
        found = load(GOOD[:at] + junk + GOOD[at + len(junk) :], "closed.json")
    except ConfigurationError:
        return
    assert all(isinstance(it.amount, Decimal) for it in found.lines)
