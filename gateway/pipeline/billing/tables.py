"""Tables as CSV (RFC 4180): texts as they are, so that they join with others, or, for
spreadsheets, as none takes them for formulas."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gateway.pipeline.billing.money import decimal_text
from gateway.usage.texts import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Cell = str | int | Decimal | Fraction | None

EXACT_DECIMALS: Final = 12
"""Of exact amounts and quantities in tables: a millionth of a millionth, as prices may have."""


def csv_text(
    header: Sequence[str], rows: Iterable[Sequence[Cell]], *, for_spreadsheets: bool = False
) -> str:
    """Return a table as text with lines that end in CR LF. Null is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    texts = harmless if for_spreadsheets else str
    writer.writerows([cell_text(it, texts) for it in row] for row in rows)
    return out.getvalue()


def cell_text(cell: Cell, texts: Callable[[str], str]) -> str:
    """Return the text of a cell: numbers in plain digits, and what `texts` makes of texts."""
    match cell:
        case None:
            return ""
        case str():
            return texts(cell)
        case Fraction():
            return decimal_text(cell, EXACT_DECIMALS)
        case Decimal():
            return format(cell, "f")
        case int():
            return str(cell)
