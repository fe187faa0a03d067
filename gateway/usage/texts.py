"""Names that others chose, as they may stand in a table or on a page.

A name may hold anything that fits into JSON: line ends, characters that turn the direction of the
text around them, a formula of a spreadsheet.
"""

from __future__ import annotations

import hashlib
from typing import Final

LONGEST: Final = 200
"""Characters of a name that are shown; those of brokers are shorter."""

_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters by which spreadsheets take a text for a formula, and their wide forms."""


def visible(name: str) -> str:
    """Return a name in which each character can be seen: others are shown as `\\u202e`.

    Different names stay different: a backslash is doubled, and a name that is cut ends with a hash.
    """
    shown = "".join(it if it.isprintable() and it != "\\" else ascii(it)[1:-1] for it in name)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…{short_hash(name)}"


def harmless(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: an apostrophe stands before it."""
    shown = visible(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def short_hash(name: str) -> str:
    """Return the first 12 hexadecimal digits of a name's SHA-256 digest."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
