"""Corrections of closed months: a credit note reverses an invoice, and a new one takes its place.

A closed month never changes, so a wrong price is put right by documents with numbers of their own,
for those tenants whose lines change. The new invoice has all that is known to be used by now: what
later invoices adjusted of the month is reversed too, and later adjustments begin from it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gateway.pipeline.billing.adjustments import Adjustment, adjust
from gateway.pipeline.billing.amounts import Charges, Line, Statement
from gateway.pipeline.billing.wording import invoice_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.pipeline.billing.closing import Closed
    from gateway.pipeline.billing.money import Currency
    from gateway.pipeline.billing.months import Month


class Standing(NamedTuple):
    """What was billed of a closed month and is not reversed.

    `bills`: the closed month and its corrections, oldest first; the lines of the last one stand.
    `adjustments`: of this month, on invoices of later months that are closed.
    """

    bills: tuple[Closed, ...]
    adjustments: tuple[Adjustment, ...]

    @property
    def last(self) -> Closed:
        """The last bill."""
        return self.bills[-1]

    def invoice_of(self, tenant: str) -> str:
        """Return the number of the latest invoice of a tenant."""
        made = [it.correction for it in self.bills if it.correction]
        number = max((it.number for it in made if tenant in it.tenants), default=0)
        return invoice_id(tenant, self.last.month, number)


class Document(NamedTuple):
    """A credit note, whose quantities and amounts are those of an invoice below zero, or the new
    invoice. `refers_to`: the invoice that is reversed; None if the tenant had none."""

    number: str
    is_credit: bool
    refers_to: str | None
    reason: str
    statement: Statement
    adjustments: tuple[Adjustment, ...] = ()


def standing(month: Month, closed: Sequence[Closed]) -> Standing | None:
    """Return what stands of a month, None if it is not closed. `closed`: all closed months, then
    all corrections, oldest first."""
    bills = tuple(it for it in closed if it.month == month)
    if not bills:
        return None
    credited = {it for bill in bills if bill.correction for it in bill.correction.credited}
    adjusted = (it for bill in closed for it in bill.adjustments if it.original == month)
    return Standing(bills, tuple(it for it in adjusted if it not in credited))


def changes(before: Standing, now: Charges) -> tuple[str, ...]:
    """Return the tenants whose lines have other amounts now, in order."""
    month, lines = before.last.month, before.last.lines
    months = month, month.next()
    found = adjust(now.currency, months, lines, now.lines(), before.adjustments)
    return tuple(sorted({it.tenant for it in found}))


def documents(before: Standing, now: Closed, charges: Charges) -> Iterator[Document]:
    """Yield the documents of a correction in order of tenants; those of `UNALLOCATED`, which nobody
    gets, balance the books. `now`: with the correction. `charges`: what it bills."""
    correction, month, currency = now.correction, now.month, charges.currency
    if correction is None:
        return
    of_lines, of_adjustments = (
        defaultdict[str, list[Line]](list),
        defaultdict[str, list[Adjustment]](list),
    )
    for line in before.last.lines:
        of_lines[line.tenant].append(_reversed(currency, line))
    for adjustment in correction.credited:
        of_adjustments[adjustment.tenant].append(_taken_back(currency, adjustment))
    statements = {it.tenant: it for it in (*charges.statements, charges.unallocated)}
    for tenant in correction.tenants:
        lines, adjusted = tuple(of_lines[tenant]), tuple(of_adjustments[tenant])
        refers_to = before.invoice_of(tenant) if lines or adjusted else None
        if refers_to is not None:
            number = invoice_id(tenant, month, correction.number, is_credit=True)
            total = currency.total(it.amount for it in lines)
            reverse = Statement(tenant, lines, total, ())
            yield Document(number, True, refers_to, correction.reason, reverse, adjusted)
        number = invoice_id(tenant, month, correction.number)
        statement = statements.get(tenant) or Statement.empty(tenant, currency)
        yield Document(number, False, refers_to, correction.reason, statement)


def _reversed(currency: Currency, line: Line) -> Line:
    return line._replace(
        quantity=-line.quantity,
        listed=-line.listed,
        exact=-line.exact,
        amount=currency.amount(-currency.units(line.amount)),
    )


def _taken_back(currency: Currency, adjustment: Adjustment) -> Adjustment:
    return adjustment._replace(
        quantity=-adjustment.quantity,
        before=adjustment.after,
        after=adjustment.before,
        amount=currency.amount(-currency.units(adjustment.amount)),
    )
