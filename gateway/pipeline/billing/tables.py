"""Tables as CSV (RFC 4180), whose texts no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gateway.pipeline.billing.money import decimal_text
from gateway.usage.texts import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Cell = str | int | Decimal | Fraction | None

EXACT_DECIMALS: Final = 12
"""Of exact amounts and quantities in tables: a millionth of a millionth, as prices may have."""


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table as text with lines that end in CR LF. Null is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([cell_text(it) for it in row] for row in rows)
    return out.getvalue()


def cell_text(cell: Cell) -> str:
    """Return the text of a cell: numbers in plain digits, texts that are harmless."""
    match cell:
        case None:
            return ""
        case str():
            return harmless(cell)
        case Fraction():
            return decimal_text(cell, EXACT_DECIMALS)
        case Decimal():
            return format(cell, "f")
        case int():
            return str(cell)
