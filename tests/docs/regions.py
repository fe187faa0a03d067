"""Regions of pages that are generated from code, each between two comments.

A region begins with `<!-- generated: make TARGET, NAME -->`, where NAME says what stands in it, and
ends with `<!-- generated until here -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

_REGION = re.compile(
    r"(<!-- generated: make \w+, ([\w-]+) -->\n).*?(<!-- generated until here -->)", re.DOTALL
)

Texts = Mapping[str, Callable[[], str]]
"""What makes the text of a region, by the region's name."""


def filled(page: str, texts: Texts) -> str:
    """Return a page whose regions have the texts of now. Raises `KeyError` for a region without a
    text."""
    return _REGION.sub(
        lambda region: f"{region[1]}\n{texts[region[2]]().strip()}\n\n{region[3]}", page
    )


def names(page: str) -> list[str]:
    """Return the names of a page's regions, in the order of the page."""
    return [region[2] for region in _REGION.finditer(page)]


def write(path: Path, texts: Texts) -> None:
    """Fill the regions of a page, and print the page's name."""
    path.write_text(filled(path.read_text(encoding="utf-8"), texts), encoding="utf-8")
    print(f"written: {path.name}")
