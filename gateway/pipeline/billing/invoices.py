"""The invoice of one tenant, as a page and as a table.

A page says what was used, what it costs and how that was made up; beside each figure stands which
part of the records it was counted from. Nothing on it comes from elsewhere, and what others named
is escaped (`markup`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.pipeline.billing.days import day_table, plots
from gateway.pipeline.billing.markup import Content, Markup, join, name, tag
from gateway.pipeline.billing.money import MINUS
from gateway.pipeline.billing.sheet import (
    Column,
    Record,
    facts,
    page,
    paragraphs,
    section,
    table,
)
from gateway.pipeline.billing.tables import csv_text
from gateway.pipeline.billing.topics import topic_table
from gateway.pipeline.billing.wording import (
    completeness_text,
    count_are,
    describe_adjustment,
    details,
    invoice_id,
    percent,
    quantity,
    title_of,
)
from gateway.usage.texts import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from decimal import Decimal

    from gateway.pipeline.billing.adjustments import Adjustment
    from gateway.pipeline.billing.amounts import Line, Statement
    from gateway.pipeline.billing.correcting import Document
    from gateway.pipeline.billing.figures import Use
    from gateway.pipeline.billing.money import Currency
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.billing.prices import RateCard
    from gateway.pipeline.billing.tables import Cell


class Invoice(NamedTuple):
    """All that an invoice says. `adjustments`: of this tenant, in this month. `issued`: the day on
    which it was made, if the page shall say it. `document`: what the correction of a closed month
    says of it."""

    card: RateCard
    month: Month
    statement: Statement
    use: Use
    adjustments: tuple[Adjustment, ...] = ()
    issued: date | None = None
    document: Document | None = None

    @property
    def number(self) -> str:
        """Its number."""
        if self.document is not None:
            return self.document.number
        return invoice_id(self.statement.tenant, self.month)

    @property
    def is_credit(self) -> bool:
        """Whether it is a credit note."""
        return self.document is not None and self.document.is_credit

    @property
    def kind(self) -> str:
        """What it is called."""
        return "Credit note" if self.is_credit else "Invoice"

    @property
    def total(self) -> Decimal:
        """What is due: lines and adjustments."""
        amounts = (self.statement.total, *(it.amount for it in self.adjustments))
        return self.card.currency.total(amounts)

    @property
    def is_final(self) -> bool:
        """Whether all records are there."""
        return self.use.completeness.part == 1


def to_html(invoice: Invoice) -> str:
    """Return the invoice as a page."""
    tenant = invoice.statement.tenant
    return page(
        f"{invoice.kind} {visible(tenant)}, {invoice.month.title}",
        _header(invoice),
        tag(
            "main",
            _facts(invoice),
            _incomplete(invoice),
            _charges(invoice),
            _adjustments(invoice),
            _unpriced(invoice),
            _days(invoice),
            _topics(invoice),
        ),
        _footer(invoice),
    )


def _header(invoice: Invoice) -> Markup:
    card = invoice.card
    return tag(
        "header",
        tag(
            "div",
            tag("p", f"{card.issuer} · {card.service}", class_="kind"),
            tag("h1", f"{invoice.kind} for ", name(invoice.statement.tenant)),
        ),
        tag(
            "div",
            tag("p", f"Total of {invoice.month.title}"),
            tag("p", card.currency.text(invoice.total), class_="amount"),
            class_="sum",
        ),
    )


def _facts(invoice: Invoice) -> Markup:
    month, completeness = invoice.month, invoice.use.completeness
    last = month.days()[-1]
    pairs: list[tuple[str, Content, str | None]] = [
        (f"Period, in {invoice.card.time_zone}", f"1 to {last.day} {month.title}", None),
        (invoice.kind, name(invoice.number), None),
        ("Account", invoice.card.account, None),
    ]
    if invoice.document is not None:
        verb = "Reverses" if invoice.is_credit else "Replaces"
        if invoice.document.refers_to is not None:
            pairs.append((verb, name(invoice.document.refers_to), None))
        pairs.append(("Reason", invoice.document.reason, None))
    if invoice.issued is not None:
        pairs.append(("Issued", invoice.issued.isoformat(), None))
    if not invoice.is_credit:
        kind = "good" if invoice.is_final else "bad"
        pairs.append(("Usage records", completeness_text(completeness.part), kind))
    return section(f"About this {invoice.kind.lower()}", facts(pairs))


def _incomplete(invoice: Invoice) -> Markup | None:
    """Say what it means that records are missing."""
    completeness = invoice.use.completeness
    if invoice.is_final or invoice.is_credit:
        return None
    if completeness.part is None:
        return section(
            "It is not known whether records are missing",
            paragraphs(
                "How many records the gateways wrote in this month is not known. Figures below "
                "are counted from what is there; if more come later, a later invoice has an "
                "adjustment that refers to this month."
            ),
            kind="warning",
        )
    charged = (
        "You are not charged for them now."
        if invoice.card.bill is None
        else "The bill was divided by what is there."
    )
    return section(
        f"{count_are(completeness.missing, 'usage record')} not there yet",
        paragraphs(
            f"Figures below are counted from {percent(completeness.part)} of the records that "
            "gateways numbered in this month. It cannot be known to which tenants the missing "
            f"ones belong. {charged} If they come later, a later invoice has an adjustment that "
            "refers to this month."
        ),
        kind="warning",
    )


def _columns(card: RateCard) -> tuple[Column, ...]:
    """Return the columns of charges: each has a price, or is a part of a bill."""
    each = "Price" if card.bill is None else "Part of the bill"
    numbers = (Column(it, is_number=True) for it in ("Quantity", each, "Records", "Amount"))
    return (Column("Charge"), *numbers)


def _charges(invoice: Invoice) -> Markup:
    currency, statement = invoice.card.currency, invoice.statement
    known = "" if invoice.is_credit else percent(invoice.use.completeness.part)
    rows = [_charge(currency, it, known) for it in statement.lines]
    if invoice.adjustments:
        text = currency.text(statement.total)
        rows.append(Record((f"Sum of {invoice.month.title}", "", "", "", text), "part"))
        added = currency.total(it.amount for it in invoice.adjustments)
        rows.append(Record((_titled(invoice), "", "", "", currency.text(added)), "part"))
    rows.append(Record(("Total", "", "", "", currency.text(invoice.total)), "total"))
    nothing = tag("p", "Nothing is charged for this month.") if not statement.lines else None
    return section("Charges", nothing, table("Charges of the month", _columns(invoice.card), rows))


def _charge(currency: Currency, line: Line, known: str) -> Record:
    what = join((title_of(line.charge), *(tag("small", it) for it in details(line))))
    much = f"{quantity(line.quantity)} {line.unit}" if line.unit else ""
    cells = (
        what,
        much,
        _each(currency, line),
        known if line.unit else "",
        currency.text(line.amount),
    )
    return Record(cells)


def _each(currency: Currency, line: Line) -> str:
    """Return what a unit costs, or which part of the bill the line is."""
    if line.share is not None:
        return percent(line.share)
    return "" if line.price is None else f"{price_text(line.price)} {currency.code}"


def price_text(price: Decimal) -> str:
    """Return a price with all of its digits, and no zeros at the end: `0.09`."""
    text = format(price, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


_ADJUSTMENTS: Final = (
    Column("Adjustment"),
    Column("Quantity", is_number=True),
    Column("Billed before", is_number=True),
    Column("Right amount", is_number=True),
    Column("Difference", is_number=True),
)


def _titled(invoice: Invoice) -> str:
    return "Adjustments on later invoices" if invoice.is_credit else "Adjustments of earlier months"


def _adjustments(invoice: Invoice) -> Markup | None:
    if not invoice.adjustments:
        return None
    currency = invoice.card.currency
    rows = [
        Record(
            (
                join(
                    (
                        describe_adjustment(it),
                        tag("small", f"of {it.original.title}"),
                    )
                ),
                f"{_signed(quantity(it.quantity))} {it.unit}" if it.unit else "",
                currency.text(it.before),
                currency.text(it.after),
                _signed(currency.text(it.amount)),
            )
        )
        for it in invoice.adjustments
    ]
    total = currency.total(it.amount for it in invoice.adjustments)
    rows.append(Record(("Sum", "", "", "", _signed(currency.text(total))), "total"))
    what = (
        "What later invoices added to this month is reversed too."
        if invoice.is_credit
        else "Usage records of these months came after their invoices were closed. What was billed "
        "then stays; here is the difference."
    )
    title = _titled(invoice)
    return section(title, paragraphs(what), table(title, _ADJUSTMENTS, rows))


def _signed(text: str) -> str:
    return text if text.startswith(MINUS) else f"+{text}"


_UNPRICED: Final = (Column("Operation"), Column("Figure"), Column("Quantity", is_number=True))


def _unpriced(invoice: Invoice) -> Markup | None:
    found = invoice.statement.unpriced
    if not found:
        return None
    rows = [
        Record(
            (
                name(it.operation),
                title_of(it.figure) if it.unit else "",
                f"{quantity(it.quantity)} {it.unit}".rstrip(),
            )
        )
        for it in found
    ]
    return section(
        "Used, and without a price",
        paragraphs(
            "The rate card has no price for these operations. They are in no amount above, which "
            "does not mean that they are free."
        ),
        table("Operations without a price", _UNPRICED, rows),
        kind="warning",
    )


def _days(invoice: Invoice) -> Markup | None:
    if not invoice.use.days:
        return None
    days = tuple(sorted(invoice.use.days))
    return section("Day by day", *plots(days), day_table(days))


def _topics(invoice: Invoice) -> Markup | None:
    use = invoice.use
    if not use.topics:
        return None
    return section("Top topics", *topic_table(use.topics, percent(use.completeness.part)))


def _footer(invoice: Invoice) -> Markup:
    code = invoice.card.currency.code
    is_bill = invoice.card.bill is not None
    how = (
        "The bill of the month is divided exactly, and then rounded by the largest remainder, so "
        "that all parts sum to it."
        if is_bill
        else f"The total is the exact sum of quantity times price, rounded once to {code}; lines "
        "are rounded by the largest remainder, so that they sum to the total."
    )
    return tag(
        "footer",
        tag("p", invoice.card.note) if invoice.card.note else None,
        tag("p", how),
        tag(
            "p",
            "In is what producers sent and brokers confirmed, out is what consumers got. A GB is "
            "10^9 bytes, of frames as they pass the gateway; each message of a batch counts. Days "
            f"are in {invoice.card.time_zone}. No tax is computed.",
        ),
    )


_CSV: Final = (
    *("Invoice", "Tenant", "Month", "Kind", "Charge", "Tier", "Quantity", "Unit", "Price"),
    *("ExactAmount", "Amount", "Currency", "OriginalMonth", "Completeness"),
    *("FirstDay", "LastDay", "RefersTo"),
)


def to_csv(invoice: Invoice, *, for_spreadsheets: bool = False) -> str:
    """Return the invoice as a table: charges, adjustments, what has no price, and the total."""
    return csv_text(_CSV, _rows(invoice), for_spreadsheets=for_spreadsheets)


def _rows(invoice: Invoice) -> Iterator[list[Cell]]:
    tenant, part = invoice.statement.tenant, invoice.use.completeness.part
    head: list[Cell] = [invoice.number, tenant, str(invoice.month)]
    code = invoice.card.currency.code
    refers_to = invoice.document and invoice.document.refers_to
    end: list[Cell] = [None, None, refers_to]
    for line in invoice.statement.lines:
        figures: list[Cell] = [line.quantity, line.unit, line.price, line.exact, line.amount]
        last = (line.until or invoice.month.next().first) - timedelta(days=1)
        days = [(line.since or invoice.month.first).isoformat(), last.isoformat(), refers_to]
        yield [*head, "charge", line.charge, line.tier, *figures, code, None, part, *days]
    for it in invoice.adjustments:
        figures = [it.quantity, it.unit, None, None, it.amount]
        original = str(it.original)
        yield [*head, "adjustment", it.charge, it.tier, *figures, code, original, None, *end]
    for un in invoice.statement.unpriced:
        figures = [un.quantity, un.unit, None, None, None]
        yield [*head, "unpriced", un.figure, None, *figures, None, None, part, *end]
    blank = [None] * 6
    yield [*head, "total", *blank, invoice.total, code, None, part, *end]
