"""From use to lines: what each tenant owes for a month, and what is nobody's.

Exact amounts are fractions, because an hour's price times milliseconds has no end as a decimal.
Rounding, see `money.apportion`: with unit prices a tenant's total is its exact sum, rounded, and
its lines are apportioned to it; the whole is the sum of totals. With a bill, tenants are
apportioned to the bill, and the lines of a tenant to its part. All results are sorted, so the order
of rows is of no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from gateway.pipeline.billing.meters import BY_FIGURE, METERS, Meter
from gateway.pipeline.billing.money import Currency, apportion
from gateway.pipeline.billing.prices import WHOLE
from gateway.telemetry.figures import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.pipeline.billing.prices import Bill, Price, RateCard, Terms

UNALLOCATED: Final = ""
"""The tenant of what is nobody's: use without a tenant, and what a split leaves."""

MOST: Final = 10**30
"""Of a figure of one row. A thousand exabytes, stored for a century, are 10^27 byte-hours."""

MINIMUM: Final = "minimum"
"""The charge of what a tenant owes beyond its lines, as it owes a minimum."""

SHARE: Final = "share"
"""The charge of a bill that is split evenly or by fixed shares."""

LEFT: Final = "left"
"""The charge of what a split leaves."""


@dataclass(frozen=True, slots=True)
class Used:
    """What one tenant used: one row of many, by whatever else it was grouped.

    Bytes, messages, milliseconds, and bytes times hours; none negative. `tenant`: "" or
    `__other__` is nobody. `others`: operations that have no meter, with their numbers; they are
    reported as unpriced.
    """

    tenant: str
    bytes_in: int = 0
    bytes_out: int = 0
    msgs_in: int = 0
    msgs_out: int = 0
    connection_ms: int = 0
    stored_byte_hours: int = 0
    others: tuple[tuple[str, int], ...] = ()


class Line(NamedTuple):
    """One line of an invoice.

    `charge`: the figure that is billed, or `MINIMUM`, `SHARE`, `LEFT`. `tier`: 0, or which tier of
    the price, which begins `above` a quantity. `quantity`: of this tier alone, in `unit`s.
    `price`: of one unit; None if the line is a part of a bill, whose `share` it is. `listed`: the
    exact amount at prices without overrides, and `list_price` its price, if it is one. `exact` and
    `amount`: before and after rounding.
    """

    tenant: str
    charge: str
    tier: int
    quantity: Fraction
    unit: str
    price: Decimal | None
    list_price: Decimal | None
    listed: Fraction
    exact: Fraction
    amount: Decimal
    share: Fraction | None = None
    above: Fraction = Fraction(0)


class Unpriced(NamedTuple):
    """What a tenant used of an operation that has no price. `unit` is "" if it is unknown."""

    tenant: str
    operation: str
    figure: str
    quantity: Fraction
    unit: str


class Statement(NamedTuple):
    """What one tenant owes; the tenant `UNALLOCATED`: what is nobody's."""

    tenant: str
    lines: tuple[Line, ...]
    total: Decimal
    unpriced: tuple[Unpriced, ...]

    @classmethod
    def empty(cls, tenant: str, currency: Currency) -> Self:
        """Return the statement of a tenant that owes nothing but adjustments."""
        return cls(tenant, (), currency.amount(0), ())


class Charges(NamedTuple):
    """All of a month. `total` is the sum of all statements, with what is unallocated.

    `refused`: rows with negative or impossible figures, which are in no sum.
    """

    currency: Currency
    statements: tuple[Statement, ...]
    unallocated: Statement
    total: Decimal
    refused: tuple[Used, ...]

    def of(self, tenant: str) -> Statement | None:
        """Return the statement of a tenant."""
        return next((it for it in self.statements if it.tenant == tenant), None)

    def lines(self) -> Iterator[Line]:
        """Yield all lines; those that are nobody's come last."""
        for statement in (*self.statements, self.unallocated):
            yield from statement.lines


def charge(card: RateCard, rows: Iterable[Used]) -> Charges:
    """Return what all tenants owe for a month by its rate card."""
    sums, refused = add_up(rows)
    lines = list(_by_bill(card.currency, card.bill, sums) if card.bill else _by_prices(card, sums))
    unpriced = [] if card.bill else list(_unpriced(card, sums))
    found = list(_statements(card.currency, sums, lines, unpriced))
    total = card.currency.total(it.total for it in found)
    return Charges(card.currency, tuple(found[1:]), found[0], total, refused)


def add_up(rows: Iterable[Used]) -> tuple[dict[str, Used], tuple[Used, ...]]:
    """Return the sum of each tenant that used something, by its name, and the broken rows."""
    sums: dict[str, dict[str, int]] = {}
    others: dict[str, dict[str, int]] = {}
    refused = []
    for row in rows:
        if not _is_sound(row):
            refused.append(row)
            continue
        tenant = UNALLOCATED if row.tenant == OTHER else row.tenant
        into = sums.setdefault(tenant, dict.fromkeys(BY_FIGURE, 0))
        for figure in BY_FIGURE:
            into[figure] += getattr(row, figure)
        beside = others.setdefault(tenant, {})
        for name, number in row.others:
            beside[name] = beside.get(name, 0) + number
    found = {
        tenant: Used(tenant, **sums[tenant], others=tuple(sorted(others[tenant].items())))
        for tenant in sorted(sums)
    }
    return {name: it for name, it in found.items() if _is_use(it)}, tuple(sorted(refused, key=repr))


def _is_sound(row: Used) -> bool:
    numbers = [getattr(row, it) for it in BY_FIGURE] + [number for _, number in row.others]
    return isinstance(row.tenant, str) and all(
        isinstance(it, int) and 0 <= it <= MOST for it in numbers
    )


def _is_use(row: Used) -> bool:
    return any(getattr(row, it) for it in BY_FIGURE) or any(number for _, number in row.others)


def _statements(
    currency: Currency, sums: Iterable[str], lines: list[Line], unpriced: list[Unpriced]
) -> Iterator[Statement]:
    """Yield the statement of what is nobody's, then one for each tenant, even one without lines."""
    of_lines, of_unpriced = _grouped(lines), _grouped(unpriced)
    for tenant in sorted({UNALLOCATED, *sums, *of_lines}):  # "" sorts first
        own = tuple(of_lines.get(tenant, ()))
        total = currency.total(it.amount for it in own)
        yield Statement(tenant, own, total, tuple(of_unpriced.get(tenant, ())))


OfTenant = TypeVar("OfTenant", Line, Unpriced)


def _grouped(items: Iterable[OfTenant]) -> dict[str, list[OfTenant]]:
    found: dict[str, list[OfTenant]] = {}
    for item in items:
        found.setdefault(item.tenant, []).append(item)
    return found


# Unit prices.


def _by_prices(card: RateCard, sums: Mapping[str, Used]) -> Iterator[Line]:
    # What is nobody's has no contract: it is shown at list prices, and owes no minimum.
    for tenant in sorted({*sums, *card.named()}):
        terms = card.terms(None if tenant == UNALLOCATED else tenant)
        used = sums.get(tenant, Used(tenant))
        lines = [line for it in METERS for line in _metered(card, terms, used, it)]
        lines += _minimum(terms, tenant, _sum(it.exact for it in lines))
        whole = card.currency.rounded(_sum(it.exact for it in lines))
        yield from _rounded(card.currency, lines, whole)


def _sum(parts: Iterable[Fraction]) -> Fraction:
    return sum(parts, Fraction(0))


def _metered(card: RateCard, terms: Terms, used: Used, meter: Meter) -> Iterator[Line]:
    """Yield a line for each tier that a tenant's use reached, not yet rounded."""
    price, raw = terms.prices.get(meter.price), getattr(used, meter.figure)
    if price is None or not raw:
        return
    listed = card.list_price(meter.price) or price
    for tier, (low, high, unit_price) in enumerate(_tiers(price)):
        ends = min(Fraction(raw), high * meter.per) if high is not None else Fraction(raw)
        part = ends - low * meter.per
        if part <= 0:
            return
        quantity = part / meter.per
        yield Line(
            tenant=used.tenant,
            charge=meter.figure,
            tier=tier,
            quantity=quantity,
            unit=meter.unit,
            price=unit_price,
            list_price=_only_price(listed, low, low + quantity),
            listed=_cost(listed, low, low + quantity),
            exact=quantity * Fraction(unit_price),
            amount=Decimal(0),
            above=low,
        )


Band = tuple[Fraction, Fraction | None, Decimal]
"""From which quantity, to which (None: without end), and the price of a unit between."""


def _tiers(price: Price) -> list[Band]:
    lows = [Fraction(0), *(Fraction(it.above) for it in price.tiers)]
    prices = [price.price, *(it.price for it in price.tiers)]
    return list(zip(lows, [*lows[1:], None], prices, strict=True))


def _overlaps(price: Price, begin: Fraction, end: Fraction) -> Iterator[tuple[Fraction, Decimal]]:
    """Yield how much of the quantity from `begin` to `end` has which price."""
    for low, high, unit_price in _tiers(price):
        size = (end if high is None else min(end, high)) - max(begin, low)
        if size > 0:
            yield size, unit_price


def _cost(price: Price, begin: Fraction, end: Fraction) -> Fraction:
    parts = (size * Fraction(each) for size, each in _overlaps(price, begin, end))
    return _sum(parts)


def _only_price(price: Price, begin: Fraction, end: Fraction) -> Decimal | None:
    found = {each for _, each in _overlaps(price, begin, end)}
    return found.pop() if len(found) == 1 else None


def _minimum(terms: Terms, tenant: str, sum_of_lines: Fraction) -> Iterator[Line]:
    """Yield the line that lifts a tenant to its minimum, if it is below."""
    missing = Fraction(terms.minimum) - sum_of_lines
    if missing > 0:
        yield _whole_line(tenant, MINIMUM, missing, None)


def _whole_line(tenant: str, charge: str, exact: Fraction, share: Fraction | None) -> Line:
    """Return a line that bills no figure: its quantity is one."""
    return Line(
        tenant=tenant,
        charge=charge,
        tier=0,
        quantity=Fraction(1),
        unit="",
        price=None,
        list_price=None,
        listed=exact,
        exact=exact,
        amount=Decimal(0),
        share=share,
    )


def _rounded(currency: Currency, lines: list[Line], whole: int) -> Iterator[Line]:
    """Yield the lines with rounded amounts, which sum to `whole`, a number of smallest units."""
    units = apportion(whole, {number: it.exact * currency.scale for number, it in enumerate(lines)})
    for number, line in enumerate(lines):
        yield line._replace(amount=currency.amount(units[number]))


def _unpriced(card: RateCard, sums: Mapping[str, Used]) -> Iterator[Unpriced]:
    """Yield what was used of operations that have no price at all for a tenant."""
    for tenant, used in sums.items():
        prices = card.terms(None if tenant == UNALLOCATED else tenant).prices
        priced = {it.operation for it in METERS if it.price in prices}
        for it in METERS:
            raw = getattr(used, it.figure)
            if raw and it.operation not in priced:
                yield Unpriced(tenant, it.operation, it.figure, Fraction(raw, it.per), it.unit)
        for name, number in used.others:
            if number:
                yield Unpriced(tenant, name, name, Fraction(number), "")


# A bill that is split.


def _by_bill(currency: Currency, bill: Bill, sums: Mapping[str, Used]) -> Iterator[Line]:
    whole = Fraction(bill.amount)
    lines = list(_parts(bill, sums))
    left = whole - _sum(it.exact for it in lines)
    if left:
        lines.append(_whole_line(UNALLOCATED, LEFT, left, left / whole))
    by_tenant = _grouped(lines)
    exact = {
        tenant: _sum(it.exact * currency.scale for it in own) for tenant, own in by_tenant.items()
    }
    units = apportion(currency.units(bill.amount), exact)
    for tenant in sorted(by_tenant):
        yield from _rounded(currency, by_tenant[tenant], units[tenant])


def _parts(bill: Bill, sums: Mapping[str, Used]) -> Iterator[Line]:
    whole = Fraction(bill.amount)
    if bill.split == "fixed":
        for tenant, percent in sorted((bill.shares or {}).items()):
            share = Fraction(percent) / WHOLE
            yield _whole_line(tenant, SHARE, whole * share, share)
    elif bill.split == "even":
        tenants = [it for it in sums if it != UNALLOCATED]
        for tenant in tenants:
            yield _whole_line(tenant, SHARE, whole / len(tenants), Fraction(1, len(tenants)))
    else:
        yield from _proportional(bill, sums)


def _proportional(bill: Bill, sums: Mapping[str, Used]) -> Iterator[Line]:
    """Yield the parts of all tenants in each pool: what one figure divides of the bill.

    A pool for each figure, because bytes and messages cannot be added up.
    """
    whole, weights = Fraction(bill.amount), bill.by or {}
    of_all = sum(map(Fraction, weights.values()))
    for meter in (it for it in METERS if it.figure in weights):
        pool = whole * Fraction(weights[meter.figure]) / of_all
        everything = sum(getattr(it, meter.figure) for it in sums.values())
        for tenant, used in sums.items():
            raw = getattr(used, meter.figure)
            if not raw:
                continue
            part = pool * Fraction(raw, everything)
            yield Line(
                tenant=tenant,
                charge=meter.figure,
                tier=0,
                quantity=Fraction(raw, meter.per),
                unit=meter.unit,
                price=None,
                list_price=None,
                listed=part,
                exact=part,
                amount=Decimal(0),
                share=part / whole if whole else None,
            )
