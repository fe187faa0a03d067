"""What late records change of a month that is closed: lines in a later month, which refer to it.

A closed month never changes. What it would cost now, by the rate card that it was closed with, is
compared with what was billed: its lines, and the adjustments that were made of it before. So doing
it twice adds nothing.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from gateway.pipeline.billing.months import Month

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.pipeline.billing.amounts import Line
    from gateway.pipeline.billing.money import Currency


class Adjustment(NamedTuple):
    """What a tenant owes more for a charge of a month that is closed; or less, below zero.

    `original`: the closed month. `present`: the month whose invoice has it. `quantity`: how much
    more was used, in `unit`s. `before` and `after`: what was billed, and what is right. `since`: as
    a line has it, where prices changed within the month.
    """

    tenant: str
    charge: str
    tier: int
    original: Month
    present: Month
    quantity: Fraction
    unit: str
    before: Decimal
    after: Decimal
    amount: Decimal
    since: date | None = None


class _Billed(NamedTuple):
    quantity: Fraction = Fraction(0)
    amount: Fraction = Fraction(0)
    unit: str = ""


_Key = tuple[str, str, int, date]
"""Tenant, charge, tier, and since when it has its price."""


def adjust(
    currency: Currency,
    months: tuple[Month, Month],
    closed: Iterable[Line],
    now: Iterable[Line],
    earlier: Iterable[Adjustment] = (),
) -> tuple[Adjustment, ...]:
    """Return the adjustments of a closed month, in order of tenants and charges.

    `months`: the original one and the present one, which is later; raises `ValueError` if it is
    not. `closed`: the lines as they were billed; `now`: as they would be today. `earlier`:
    adjustments that were billed, of which those of the original month count. The amounts sum to
    the difference; a charge whose amount is right has none.
    """
    original, present = months
    if present <= original:
        raise ValueError(f"an adjustment of {original} is billed in a later month, not {present}")
    before = _sums((*closed, *(it for it in earlier if it.original == original)))
    after = _sums(now)
    found = []
    for key in sorted(before.keys() | after.keys()):
        was, is_now = before.get(key, _Billed()), after.get(key, _Billed())
        if was.amount == is_now.amount:
            continue
        old, new = (currency.amount(currency.units(it.amount)) for it in (was, is_now))
        tenant, charge, tier, since = key
        found.append(
            Adjustment(
                *(tenant, charge, tier, original),
                present,
                quantity=is_now.quantity - was.quantity,
                unit=is_now.unit or was.unit,
                before=old,
                after=new,
                amount=currency.amount(currency.units(is_now.amount - was.amount)),
                since=None if since == date.min else since,
            )
        )
    return tuple(found)


def _sums(lines: Iterable[Line | Adjustment]) -> dict[_Key, _Billed]:
    found: dict[_Key, _Billed] = {}
    for line in lines:
        key = (line.tenant, line.charge, line.tier, line.since or date.min)
        sums = found.get(key, _Billed())
        found[key] = _Billed(
            sums.quantity + line.quantity,
            sums.amount + Fraction(line.amount),
            sums.unit or line.unit,
        )
    return found
