"""A closed month as a file: its lines as they were billed, and the rate card that they came from.

The rate card is kept with the values that its environment variables had, so that late records are
priced as the others were. Fractions are texts (`1/3`), amounts too: no float is written or read.
"""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gateway.config.mistakes import format_place
from gateway.errors import ConfigurationError
from gateway.pipeline.billing import prices
from gateway.pipeline.billing.adjustments import Adjustment
from gateway.pipeline.billing.amounts import Line
from gateway.pipeline.billing.months import Month

if TYPE_CHECKING:
    from decimal import Decimal

    from gateway.pipeline.billing.prices import RateCard

VERSION: Final = 1
"""Of the file."""

_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[1-9][0-9]{0,1000})?")
"""Longer ones do not come about, and Python refuses to read very long ones."""


class Correction(NamedTuple):
    """Why a closed month was billed again.

    `number`: of the month's corrections, from 1. `issued`: the day of the credit notes. `tenants`:
    those that got one, or a new invoice. `credited`: adjustments of this month, on invoices of
    later months, that credit notes reverse beside the lines that were billed before.
    """

    number: int
    issued: date
    reason: str
    tenants: tuple[str, ...] = ()
    credited: tuple[Adjustment, ...] = ()


class Closed(NamedTuple):
    """A month as it was billed; or as it was billed again, by a correction.

    `adjustments`: of earlier months, on its invoices. A correction has none: they stay as they
    were.
    """

    month: Month
    card: RateCard
    lines: tuple[Line, ...]
    adjustments: tuple[Adjustment, ...] = ()
    correction: Correction | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    month: str
    card: dict[str, Any]
    lines: list[Line]
    adjustments: list[Adjustment] = []
    correction: Correction | None = None


def dump(closed: Closed) -> bytes:
    """Return a closed month as JSON; the same one gives the same bytes."""
    month, card, lines, adjustments, correction = closed
    data = prices.to_data(card)
    file = _File(VERSION, str(month), data, list(lines), list(adjustments), correction)
    return msgspec.json.encode(file, enc_hook=_written) + b"\n"


def load(data: bytes, title: str) -> Closed:
    """Read a closed month. `title` is what mistakes name.

    Raises `ConfigurationError` for anything but what `dump` writes.
    """
    try:
        file = msgspec.json.decode(data, type=_File, dec_hook=_read)
        month = Month.read(file.month)
    except (msgspec.DecodeError, ValueError) as why:
        raise ConfigurationError(f"{title}: is not a closed month: {why}; {_ADVICE}") from None
    card, mistakes = prices.build(file.card)
    if file.v != VERSION or card is None:
        wrong = [f"{format_place(it.place)} {it.text}" for it in mistakes] or [f"version {file.v}"]
        raise ConfigurationError(f"{title}: is not a closed month: {wrong[0]}; {_ADVICE}")
    credited = file.correction.credited if file.correction else ()
    billed: list[Line | Adjustment] = [*file.lines, *file.adjustments, *credited]
    for it in billed:
        _check(card, it, title)
    lines, adjustments = tuple(file.lines), tuple(file.adjustments)
    return Closed(month, card, lines, adjustments, file.correction)


_ADVICE: Final = "restore the file that was written when the month was closed"


_LONGEST: Final = 100
"""Digits of an amount or a price: far above those that come about, and quick to compute with."""


def _check(card: RateCard, line: Line | Adjustment, title: str) -> None:
    """Refuse amounts that the currency does not have: sums of them would not be exact."""
    of_line = (line.price, line.list_price) if isinstance(line, Line) else ()
    found = (it for it in (line.amount, *of_line) if it is not None)
    if not all(map(_is_short, found)):
        raise ConfigurationError(f"{title}: an amount is not finite or too long; {_ADVICE}")
    try:
        card.currency.units(line.amount)
    except ValueError as why:
        raise ConfigurationError(f"{title}: an amount {why}; {_ADVICE}") from None


def _is_short(amount: Decimal) -> bool:
    _, digits, exponent = amount.as_tuple()
    return isinstance(exponent, int) and len(digits) <= _LONGEST and abs(exponent) <= _LONGEST


def _written(value: object) -> str:
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"a line has no {type(value).__name__}")


def _read(kind: type, value: object) -> object:
    if kind is Fraction and isinstance(value, str) and _FRACTION.fullmatch(value):
        return Fraction(value)
    raise ValueError("a fraction is not like 1/3")
