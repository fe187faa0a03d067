"""One page of a month for the operator: all tenants, and what is nobody's."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.pipeline.billing.amounts import UNALLOCATED
from gateway.pipeline.billing.charts import share_bar
from gateway.pipeline.billing.file_names import file_stem
from gateway.pipeline.billing.markup import Content, Markup, join, name, tag
from gateway.pipeline.billing.sheet import (
    Column,
    Record,
    facts,
    page,
    paragraphs,
    section,
    table,
)
from gateway.pipeline.billing.wording import (
    completeness_text,
    count_are,
    describe,
    percent,
    quantity,
)

if TYPE_CHECKING:
    from decimal import Decimal

    from gateway.pipeline.billing.adjustments import Adjustment
    from gateway.pipeline.billing.amounts import Charges, Statement
    from gateway.pipeline.billing.figures import Completeness
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.billing.prices import RateCard


class Overview(NamedTuple):
    """All that the page says. `has_links`: invoices lie beside it, as `file_stem(tenant).html`."""

    card: RateCard
    month: Month
    charges: Charges
    completeness: Completeness
    adjustments: tuple[Adjustment, ...] = ()
    has_links: bool = False

    @property
    def total(self) -> Decimal:
        """The whole: all charges and adjustments, with what is nobody's."""
        amounts = (self.charges.total, *(it.amount for it in self.adjustments))
        return self.card.currency.total(amounts)


def to_html(overview: Overview) -> str:
    """Return the page."""
    card, month = overview.card, overview.month
    header = tag(
        "header",
        tag(
            "div",
            tag("p", f"{card.issuer} · {card.service}", class_="kind"),
            tag("h1", f"All tenants in {month.title}"),
        ),
        tag(
            "div",
            tag("p", "The whole"),
            tag("p", card.currency.text(overview.total), class_="amount"),
            class_="sum",
        ),
    )
    parts = (_facts(overview), _incomplete(overview), _refused(overview), _tenants(overview))
    main = tag("main", *parts, _unallocated(overview), _unpriced(overview))
    return page(f"All tenants, {month.title}", header, main, _footer(overview))


def _facts(overview: Overview) -> Markup:
    currency, part = overview.card.currency, overview.completeness.part
    sums = _sums(overview)
    nobody = sums.pop(UNALLOCATED).total
    invoiced = currency.total((overview.total, nobody.copy_negate()))
    pairs: list[tuple[str, Content, str | None]] = [
        ("Invoices", f"{len(sums):,}", None),
        ("Invoiced", currency.text(invoiced), None),
        ("Unallocated", currency.text(nobody), "bad" if nobody else "good"),
        ("Usage records", completeness_text(part), "good" if part == 1 else "bad"),
    ]
    return section("This month", facts(pairs))


def _incomplete(overview: Overview) -> Markup | None:
    completeness = overview.completeness
    if completeness.part in (1, None):
        return None
    return section(
        f"{count_are(completeness.missing, 'usage record')} not there yet",
        paragraphs(
            "All figures are counted from what is there. Records that come after the month is "
            "closed become adjustments of a later month."
        ),
        kind="warning",
    )


def _refused(overview: Overview) -> Markup | None:
    number = len(overview.charges.refused)
    if not number:
        return None
    return section(
        f"{count_are(number, 'row')} not billed",
        paragraphs("Their figures are negative or impossible. They are in no sum of this page."),
        kind="warning",
    )


_TENANTS: Final = (
    Column("Tenant"),
    Column("Part of the whole"),
    Column("Charges", is_number=True),
    Column("Adjustments", is_number=True),
    Column("Records", is_number=True),
    Column("Total", is_number=True),
)


class _Sum(NamedTuple):
    """What a tenant owes. `statement` is None if it has adjustments alone."""

    tenant: str
    statement: Statement | None
    charged: Decimal
    adjusted: Decimal
    total: Decimal


def _sums(overview: Overview) -> dict[str, _Sum]:
    """Return the sums of all tenants, and of what is nobody's."""
    currency = overview.card.currency
    statements = (*overview.charges.statements, overview.charges.unallocated)
    by_name = {it.tenant: it for it in statements}
    adjusted: dict[str, list[Decimal]] = {}
    for it in overview.adjustments:
        adjusted.setdefault(it.tenant, []).append(it.amount)
    found = {}
    for tenant in by_name.keys() | adjusted.keys():
        statement = by_name.get(tenant)
        charged = currency.amount(0) if statement is None else statement.total
        added = currency.total(adjusted.get(tenant, ()))
        total = currency.total((charged, added))
        found[tenant] = _Sum(tenant, statement, charged, added, total)
    return found


def _tenants(overview: Overview) -> Markup:
    sums = _sums(overview)
    nobody = sums.pop(UNALLOCATED)
    order = sorted(sums.values(), key=lambda it: (-Fraction(it.total), it.tenant))
    rows = [_row(overview, it) for it in order]
    rows.append(_row(overview, nobody)._replace(kind="nobody"))
    whole = overview.card.currency.text(overview.total)
    rows.append(Record(("The whole", "", "", "", "", whole), "total"))
    return section("Tenants", table("What all tenants owe", _TENANTS, rows))


def _row(overview: Overview, sums: _Sum) -> Record:
    currency = overview.card.currency
    whole = max(currency.units(overview.total), 1)
    units = max(currency.units(sums.total), 0)
    part = percent(Fraction(min(units, whole), whole))
    kind = "in" if sums.tenant != UNALLOCATED else "nobody"
    return Record(
        (
            _called(overview, sums.tenant, sums.statement),
            share_bar(((kind, min(units, whole)),), whole, f"{part} of the whole"),
            currency.text(sums.charged),
            currency.text(sums.adjusted) if sums.adjusted else "",
            percent(overview.completeness.part),
            currency.text(sums.total),
        )
    )


def _called(overview: Overview, tenant: str, statement: Statement | None) -> Markup:
    if tenant == UNALLOCATED:
        return tag("span", "Unallocated")
    shown = name(tenant)
    if overview.has_links:
        shown = tag("a", shown, href=f"{file_stem(tenant)}.html")
    if statement is not None and statement.unpriced:
        flag = tag("small", tag("span", "used operations without a price", class_="flag"))
        return join((shown, flag))
    return shown


_LINES: Final = (
    Column("Charge"),
    Column("Quantity", is_number=True),
    Column("Amount", is_number=True),
)


def _unallocated(overview: Overview) -> Markup:
    nobody, currency = overview.charges.unallocated, overview.card.currency
    if not nobody.lines:
        return section("Unallocated", tag("p", "Nothing: all use is some tenant's."))
    rows = [
        Record(
            (
                describe(it),
                f"{quantity(it.quantity)} {it.unit}" if it.unit else "",
                currency.text(it.amount),
            )
        )
        for it in nobody.lines
    ]
    rows.append(Record(("Sum", "", currency.text(nobody.total)), "total"))
    what = (
        "What the split of the bill leaves, and the part of use that belongs to no tenant."
        if overview.card.bill is not None
        else "What use that belongs to no tenant would cost at list prices. Nobody is billed for "
        "it."
    )
    table_of_lines = table("What is nobody's", _LINES, rows)
    return section("Unallocated", paragraphs(what), table_of_lines)


_UNPRICED: Final = (
    Column("Tenant"),
    Column("Operation"),
    Column("Quantity", is_number=True),
)


def _unpriced(overview: Overview) -> Markup | None:
    statements = (*overview.charges.statements, overview.charges.unallocated)
    rows = [
        Record(
            (
                name(it.tenant) if it.tenant != UNALLOCATED else "Unallocated",
                name(it.operation),
                f"{quantity(it.quantity)} {it.unit}".rstrip(),
            )
        )
        for statement in statements
        for it in statement.unpriced
    ]
    if not rows:
        return None
    return section(
        "Used, and without a price",
        paragraphs(
            "The rate card has no price for these operations, so they are in no amount. A price "
            "of 0 says that one is free."
        ),
        table("Operations without a price", _UNPRICED, rows),
        kind="warning",
    )


def _footer(overview: Overview) -> Markup:
    return tag(
        "footer",
        tag(
            "p",
            "Amounts of tenants and what is unallocated sum to the whole exactly. Days and months "
            f"are in {overview.card.time_zone}. No tax is computed.",
        ),
    )
