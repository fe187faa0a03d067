"""From use to lines: what each tenant owes for a month, and what is nobody's.

Exact amounts are fractions, because an hour's price times milliseconds has no end as a decimal.
Rounding, see `money.apportion`: with unit prices a tenant's total is its exact sum, rounded, and
its lines are apportioned to it; the whole is the sum of totals. With a bill, tenants are
apportioned to the bill, and the lines of a tenant to its part. All results are sorted, so the order
of rows is of no effect.

Where prices change within the month, the day of use decides which price it has. Steps of tiers run
through the month: what was used before a change counts for the step that use after it begins in. So
a change that changes nothing moves no line, and each tier has as much of the month as it had
without a change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from gateway.errors import ConfigurationError
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
    reported as unpriced. `day`: on which all of it was used, None if that is not known.
    """

    tenant: str
    bytes_in: int = 0
    bytes_out: int = 0
    msgs_in: int = 0
    msgs_out: int = 0
    connection_ms: int = 0
    stored_byte_hours: int = 0
    others: tuple[tuple[str, int], ...] = ()
    day: date | None = None


class Line(NamedTuple):
    """One line of an invoice.

    `charge`: the figure that is billed, or `MINIMUM`, `SHARE`, `LEFT`. `tier`: 0, or which tier of
    the price, which begins `above` a quantity. `quantity`: of this tier alone, in `unit`s.
    `price`: of one unit; None if the line is a part of a bill, whose `share` it is. `listed`: the
    exact amount at prices without overrides, and `list_price` its price, if it is one. `exact` and
    `amount`: before and after rounding. `since` and `until`: the first day with this price, and the
    first one without it; None if that is the begin or the end of the month.
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
    since: date | None = None
    until: date | None = None


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
    """Return what all tenants owe for a month by its rate card, whose `changes` are those of this
    month. Raises `ConfigurationError` if the price of something changes that is not known by day.
    """
    rows = tuple(rows)
    sums, refused = add_up(rows)
    if card.bill:
        lines, unpriced = list(_by_bill(card.currency, card.bill, sums)), []
    else:
        periods = _periods(card, rows)
        lines = list(_by_prices(card, periods, sums))
        unpriced = list(_unpriced(periods, sums))
    found = list(_statements(card.currency, sums, lines, unpriced))
    total = card.currency.total(it.total for it in found)
    return Charges(card.currency, tuple(found[1:]), found[0], total, refused)


def add_up(rows: Iterable[Used]) -> tuple[dict[str, Used], tuple[Used, ...]]:
    """Return the sum of each tenant that used something, by its name, and the broken rows."""
    sums: dict[str, dict[str, Any]] = {}
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


class _Period(NamedTuple):
    """Days of the month with the prices of one card; see `Line` for its ends. `sums`: what each
    tenant used. `undated`: the part of it that may be of other periods."""

    card: RateCard
    since: date | None
    until: date | None
    sums: Mapping[str, Used]
    undated: Mapping[str, Used]

    def terms(self, tenant: str) -> Terms:
        # What is nobody's has no contract: it is shown at list prices, and owes no minimum.
        return self.card.terms(None if tenant == UNALLOCATED else tenant)

    def used(self, tenant: str) -> Used:
        return self.sums.get(tenant) or Used(tenant)


def _periods(card: RateCard, rows: Iterable[Used]) -> list[_Period]:
    """Return the periods of a month, which are one if its prices do not change. The first has what
    is not known by day."""
    days = [it.valid_from for it in card.changes]
    of_period: list[list[Used]] = [[] for _ in (None, *days)]
    undated = []
    for row in rows:
        of_period[0 if row.day is None else bisect_right(days, row.day)].append(row)
        if row.day is None:
            undated.append(row)
    found: list[_Period] = []
    for since, until, used in zip([None, *days], [*days, None], of_period, strict=True):
        card = card if since is None else card.changed(card.changes[0])
        loose = {} if found else add_up(undated)[0]
        found.append(_Period(card, since, until, add_up(used)[0], loose))
    return found


def _by_prices(card: RateCard, periods: list[_Period], sums: Mapping[str, Used]) -> Iterator[Line]:
    for tenant in sorted({*sums, *card.named()}):
        terms = [it.terms(tenant) for it in periods]
        lines = [line for it in METERS for line in _metered(periods, terms, tenant, it)]
        lines += _minimum(terms[0], tenant, _sum(it.exact for it in lines))
        whole = card.currency.rounded(_sum(it.exact for it in lines))
        yield from _rounded(card.currency, lines, whole)


def _sum(parts: Iterable[Fraction]) -> Fraction:
    return sum(parts, Fraction(0))


def _metered(
    periods: list[_Period], terms: list[Terms], tenant: str, meter: Meter
) -> Iterator[Line]:
    """Yield the lines of one meter, before rounding: one for each tier that the tenant's use
    reached, of each price that the meter had in the month. `terms`: of each period."""

    def prices(number: int) -> tuple[Price | None, Price | None]:
        price = terms[number].prices.get(meter.price)
        return price, periods[number].card.list_price(meter.price) or price

    grouped = groupby(range(len(periods)), prices)
    begin, of_prices = Fraction(0), [(key, [periods[it] for it in same]) for key, same in grouped]
    loose = periods[0].undated.get(tenant)
    if len(of_prices) > 1 and loose is not None and getattr(loose, meter.figure):
        raise ConfigurationError(
            f"the price {meter.price} changes on {of_prices[1][1][0].since}, and not all of the "
            "use that it is for is known by day"
        )
    for (price, listed), of_price in of_prices:
        raw = sum(getattr(it.used(tenant), meter.figure) for it in of_price)
        end = begin + Fraction(raw, meter.per)
        if price is not None and listed is not None:
            days = of_price[0].since, of_price[-1].until
            for line in _tiered(tenant, meter, (price, listed), (begin, end)):
                yield line._replace(since=days[0], until=days[1])
        begin = end


def _tiered(
    tenant: str, meter: Meter, prices: tuple[Price, Price], part: tuple[Fraction, Fraction]
) -> Iterator[Line]:
    """Yield a line for each tier that a part of the month's quantity reaches, from where it begins
    to where it ends. `prices`: what is charged, and the list price."""
    price, listed = prices
    for tier, (low, high, unit_price) in enumerate(_tiers(price)):
        begin, end = max(part[0], low), part[1] if high is None else min(part[1], high)
        if begin >= end:
            continue
        yield Line(
            tenant=tenant,
            charge=meter.figure,
            tier=tier,
            quantity=end - begin,
            unit=meter.unit,
            price=unit_price,
            list_price=_only_price(listed, begin, end),
            listed=_cost(listed, begin, end),
            exact=(end - begin) * Fraction(unit_price),
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


def _unpriced(periods: Iterable[_Period], sums: Mapping[str, Used]) -> Iterator[Unpriced]:
    """Yield what was used of operations while they had no price at all for a tenant."""
    for tenant, used in sums.items():
        seen = [(it.used(tenant), _priced(it.terms(tenant))) for it in periods]
        for it in METERS:
            raw = sum(getattr(own, it.figure) for own, priced in seen if it.operation not in priced)
            if raw:
                yield Unpriced(tenant, it.operation, it.figure, Fraction(raw, it.per), it.unit)
        for name, number in used.others:
            if number:
                yield Unpriced(tenant, name, name, Fraction(number), "")


def _priced(terms: Terms) -> set[str]:
    """Return the operations that have a price."""
    return {it.operation for it in METERS if it.price in terms.prices}


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
