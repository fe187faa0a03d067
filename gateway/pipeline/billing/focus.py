"""Lines as rows of FOCUS 1.2, the FinOps Open Cost and Usage Specification (focus.finops.org).

All columns that 1.2 makes mandatory are here, and those conditional ones that apply to unit prices,
SKUs and sub accounts; a tenant is a sub account, null if a charge is nobody's. Prices of a rate
card are of no negotiated kind but its overrides, so the list cost is the cost without them.

BilledCost and EffectiveCost are the rounded amounts, which sum to the invoice. ListCost and
ContractedCost are unit price times quantity, as 1.2 demands, before rounding. An adjustment is a
correction: its charge period is the original month, its billing period the present one.

What is nobody's is on an invoice without a tenant's name, which nobody gets: a data set has numbers
of invoices in all rows or in none. What falls short of 1.2: a part of a split bill has no unit
prices.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.pipeline.billing.amounts import UNALLOCATED, Charges, Line
from gateway.pipeline.billing.meters import BY_FIGURE
from gateway.pipeline.billing.months import Month, instant
from gateway.pipeline.billing.tables import Cell, cell_text, csv_text
from gateway.pipeline.billing.wording import (
    describe,
    describe_adjustment,
    invoice_id,
    title_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from gateway.pipeline.billing.adjustments import Adjustment
    from gateway.pipeline.billing.correcting import Document
    from gateway.pipeline.billing.prices import RateCard

VERSION: Final = "1.2"
"""Of FOCUS. Later versions add columns for allocation; this one is what most tools read."""

MANDATORY: Final = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost"),
    *("EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit"),
    *("ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
)
"""Columns that each data set of 1.2 has."""

COLUMNS: Final = tuple(
    sorted(
        (
            *MANDATORY,
            *("BillingAccountType", "ChargeFrequency", "ConsumedQuantity", "ConsumedUnit"),
            *("ContractedUnitPrice", "InvoiceId", "ListUnitPrice", "PricingCategory"),
            *("ResourceId", "ResourceName", "ResourceType", "ServiceSubcategory"),
            *("SkuId", "SkuMeter", "SkuPriceId", "SubAccountId", "SubAccountName"),
            "SubAccountType",
        )
    )
)
"""Columns of the specification that are written, in order."""

OWN: Final = ("x_BillShare", "x_Completeness", "x_ExactCost")
"""Columns of our own: which part of a bill a line is, which part of the month's records is there,
and the amount before rounding."""


_NO_USAGE: Final = "Adjustment"
"""The category of a minimum or a share. It is not `Purchase`: `focus-validator` demands that the
effective cost of a purchase is 0, because a purchase covers later charges."""


class Setting(NamedTuple):
    """What all rows of a month have. `completeness`: the part of records that are there, or None
    if it is not known."""

    card: RateCard
    month: Month
    completeness: Fraction | None = None


Row = dict[str, Cell]


def rows(
    setting: Setting, charges: Charges, adjustments: Iterable[Adjustment] = ()
) -> Iterator[Row]:
    """Yield a row for each line and each adjustment that the month's invoices have."""
    for line in charges.lines():
        yield _base(setting, line.tenant) | _of_line(setting, line)
    for adjustment in adjustments:
        yield _base(setting, adjustment.tenant) | _of_adjustment(setting, adjustment)


def to_csv(
    setting: Setting,
    charges: Charges,
    adjustments: Iterable[Adjustment] = (),
    *,
    for_spreadsheets: bool = False,
) -> str:
    """Return the rows as a CSV table with all columns."""
    return _table(rows(setting, charges, adjustments), for_spreadsheets=for_spreadsheets)


def corrections_to_csv(
    setting: Setting,
    issued: date,
    documents: Iterable[Document],
    *,
    for_spreadsheets: bool = False,
) -> str:
    """Return the rows of credit notes and new invoices of a month as a CSV table with all columns.
    They are corrections in the billing period in which they were issued."""
    present = setting._replace(month=Month(issued.year, issued.month))
    return _table(_corrected(setting, present, documents), for_spreadsheets=for_spreadsheets)


def _table(found: Iterable[Row], *, for_spreadsheets: bool) -> str:
    columns = (*COLUMNS, *OWN)
    cells = ([_with_point(row.get(it)) for it in columns] for row in found)
    return csv_text(columns, cells, for_spreadsheets=for_spreadsheets)


def _with_point(cell: Cell) -> Cell:
    """Return a number with a decimal, since a column of whole numbers is taken for integers."""
    if not isinstance(cell, Decimal | Fraction):
        return cell
    text = cell_text(cell, str)
    return Decimal(text if "." in text else f"{text}.0")


def _corrected(setting: Setting, present: Setting, documents: Iterable[Document]) -> Iterator[Row]:
    for document in documents:
        tenant, what = document.statement.tenant, "Credit" if document.is_credit else "New invoice"
        base = _base(present, tenant)
        base["InvoiceId"] = document.number
        for line in document.statement.lines:
            text = f"{what} of {setting.month}: {describe(line)}"
            row = base | _of_line(setting, line)
            yield row | {"ChargeClass": "Correction", "ChargeDescription": text}
        for adjustment in document.adjustments:
            yield base | _of_adjustment(setting, adjustment)


def _base(setting: Setting, tenant: str) -> Row:
    card, month, zone = setting.card, setting.month, setting.card.time_zone
    is_somebody = tenant != UNALLOCATED
    return {
        "BillingAccountId": card.account,
        "BillingAccountName": card.account,
        "BillingAccountType": "Billing Account",
        "BillingCurrency": card.currency.code,
        "BillingPeriodStart": instant(month.first, zone),
        "BillingPeriodEnd": instant(month.next().first, zone),
        "InvoiceId": invoice_id(tenant, month),
        "InvoiceIssuerName": card.issuer,
        "ProviderName": card.issuer,
        "PublisherName": card.issuer,
        "ServiceCategory": "Integration",
        "ServiceName": card.service,
        "ServiceSubcategory": "Messaging",
        "SubAccountId": tenant if is_somebody else None,
        "SubAccountName": tenant if is_somebody else None,
        "SubAccountType": "Tenant" if is_somebody else None,
        "x_Completeness": setting.completeness,
    }


def _of_line(setting: Setting, line: Line) -> Row:
    meter = BY_FIGURE.get(line.charge)
    is_usage, month, zone = meter is not None, setting.month, setting.card.time_zone
    found: Row = {
        "BilledCost": line.amount,
        "EffectiveCost": line.amount,
        "ContractedCost": line.exact,
        "ListCost": line.listed,
        "ChargeCategory": "Usage" if is_usage else _NO_USAGE,
        "ChargeClass": None,
        "ChargeDescription": describe(line),
        "ChargeFrequency": "Usage-Based" if is_usage else "Recurring",
        "ChargePeriodStart": instant(line.since or month.first, zone),
        "ChargePeriodEnd": instant(line.until or month.next().first, zone),
        "PricingCategory": "Standard" if line.share is None else "Other",
        "PricingQuantity": line.quantity,
        "PricingUnit": meter.focus if meter else "Units",
        "SkuId": line.charge,
        "SkuMeter": title_of(line.charge),
        "SkuPriceId": f"{line.charge}/{line.tier}" + (f"/{line.since}" if line.since else ""),
        "x_BillShare": line.share,
        "x_ExactCost": line.exact,
    }
    if meter is not None:
        found |= {"ConsumedQuantity": line.quantity, "ConsumedUnit": meter.focus}
    if line.share is None:
        each = line.exact / line.quantity if line.price is None else line.price
        found["ContractedUnitPrice"] = each
        # The average where several tiers of the list apply: times the quantity, it is the cost.
        found["ListUnitPrice"] = line.list_price or line.listed / line.quantity
    return found


def _of_adjustment(setting: Setting, adjustment: Adjustment) -> Row:
    """Return the row of a correction, whose quantities may be null in 1.2, and its prices too."""
    what, zone = describe_adjustment(adjustment), setting.card.time_zone
    meter = BY_FIGURE.get(adjustment.charge)
    return {
        "BilledCost": adjustment.amount,
        "EffectiveCost": adjustment.amount,
        "ContractedCost": adjustment.amount,
        "ListCost": adjustment.amount,
        "ChargeCategory": "Usage" if meter else _NO_USAGE,
        "ChargeClass": "Correction",
        "ChargeDescription": f"Correction of {adjustment.original}: {what}",
        "ChargeFrequency": "One-Time",
        "ChargePeriodStart": instant(adjustment.since or adjustment.original.first, zone),
        "ChargePeriodEnd": instant(adjustment.original.next().first, zone),
        "ConsumedQuantity": adjustment.quantity if meter else None,
        "ConsumedUnit": meter.focus if meter else None,
        "SkuId": adjustment.charge,
        "SkuMeter": title_of(adjustment.charge),
        "x_ExactCost": adjustment.amount,
    }
