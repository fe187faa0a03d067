"""Words of invoices: what a line is called, and figures as people read them."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gateway.pipeline.billing.amounts import LEFT, MINIMUM, SHARE
from gateway.pipeline.billing.meters import BY_FIGURE
from gateway.pipeline.billing.money import MINUS, decimal_text
from gateway.pipeline.billing.months import month_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from gateway.pipeline.billing.adjustments import Adjustment
    from gateway.pipeline.billing.amounts import Line
    from gateway.pipeline.billing.months import Month

_SHOWN: Final = 6
"""Decimals of a quantity on a page; tables have twelve."""

_BYTES: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_NUMBERS: Final = ("", "k", "M", "G", "T", "P", "E")

_TITLES: Final = {
    MINIMUM: "Minimum of the month",
    SHARE: "Share of the bill",
    LEFT: "Left by the split",
}


def title_of(charge: str) -> str:
    """Return what a charge is called: `Data in`."""
    meter = BY_FIGURE.get(charge)
    return meter.title if meter else _TITLES.get(charge, charge)


def describe(line: Line) -> str:
    """Return what a line is about: `Data in, above 1,000 GB, from 16 October`."""
    return ", ".join((title_of(line.charge), *details(line)))


def details(line: Line) -> Iterator[str]:
    """Yield what tells a line from others of its charge: its tier, and when its price is valid."""
    if line.tier:
        yield f"above {quantity(line.above)} {line.unit}"
    last = line.until and day_text(line.until - timedelta(days=1))
    if line.since is not None:
        yield f"from {day_text(line.since)}" + (f" to {last}" if last else "")
    elif last:
        yield f"until {last}"


def describe_adjustment(adjustment: Adjustment) -> str:
    """Return what an adjustment is about; its tier counts from 1, as the first has no number."""
    title, tier, since = title_of(adjustment.charge), adjustment.tier, adjustment.since
    if tier:
        title = f"{title}, tier {tier + 1}"
    return title if since is None else f"{title}, from {day_text(since)}"


def invoice_id(tenant: str, month: Month, correction: int = 0, *, is_credit: bool = False) -> str:
    """Return the number of a tenant's invoice: `2026-10/acme`. Those of the month's first
    correction are `2026-10.1/acme`, and its credit note `2026-10.1-credit/acme`."""
    nth = f".{correction}" if correction else ""
    return f"{month}{nth}{'-credit' if is_credit else ''}/{tenant}"


def count_are(number: int, noun: str) -> str:
    """Return a number with its noun and verb: `1 record is`, `2,000 records are`."""
    return f"1 {noun} is" if number == 1 else f"{number:,} {noun}s are"


def quantity(value: Fraction) -> str:
    """Return a quantity with six decimals at most: `1,234.5`; a smaller one is not zero."""
    shown = decimal_text(abs(value), _SHOWN)
    if shown == "0" and value:
        return f"below {decimal_text(Fraction(1, 10**_SHOWN), _SHOWN)}"
    whole, point, part = shown.partition(".")
    return f"{MINUS if value < 0 else ''}{int(whole):,}{point}{part}"


def bytes_text(number: int) -> str:
    """Return bytes in three digits: `1.23 GB`, of powers of 1000."""
    return _short(number, _BYTES)


def number_text(number: int) -> str:
    """Return a number in three digits: `1.23 M`."""
    return _short(number, _NUMBERS).rstrip()


def _short(number: int, names: tuple[str, ...]) -> str:
    step = min((len(str(abs(number))) - 1) // 3, len(names) - 1)
    value = Fraction(number, 1000**step)
    decimals = 0 if not step else max(0, 3 - len(str(int(abs(value)))))
    text = decimal_text(value, decimals)
    if text == "1000" and step + 1 < len(names):
        return f"1 {names[step + 1]}"
    return f"{text} {names[step]}"


def day_text(day: date) -> str:
    """Return a day: `3 November`."""
    return f"{day.day} {month_name(day.month)}"


def completeness_text(part: Fraction | None) -> str:
    """Return which part of the records is there, for readers."""
    if part is None:
        return "not known"
    return "all are there" if part == 1 else f"{percent(part)} are there"


def percent(part: Fraction | None) -> str:
    """Return a part for a cell: `99.2 %`; never 100 % if something is missing."""
    if part is None:
        return "not known"
    hundredths = part * 10_000
    floor = Fraction(hundredths.numerator // hundredths.denominator, 10_000)
    return "above 0 %" if part and not floor else f"{decimal_text(floor * 100, 2)} %"
