"""`python -m tests.docs.metrics`: writes the tables of docs/metrics.md from the declared families.

A test holds the page to the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gateway.telemetry.families import SECTIONS, Family, Merge, Section

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
BEGIN, END = "<!-- generated: make metrics -->", "<!-- generated until here -->"

_MERGED = {Merge.SUM: "sum", Merge.LEAST: "least", Merge.MOST: "most"}


def tables() -> str:
    """Return the generated part of the page."""
    return "\n".join(line for section in SECTIONS for line in _section(section)).rstrip()


def _section(section: Section) -> Iterator[str]:
    yield f"### {section.title}"
    yield ""
    if section.needs:
        yield f"Only with {section.needs}."
        yield ""
    yield "| Metric | Type | Labels | Workers | Meaning |"
    yield "|---|---|---|---|---|"
    for family in section.families:
        yield _row(family, section)
    yield ""


def _row(family: Family, section: Section) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    text = re.sub(r"'([^' ]+)'", r"`\1`", family.text)
    if family.needs and family.needs != section.needs:
        text += f" Only with {family.needs}."
    kind = "gauge" if family.kind == "info" else family.kind
    return f"| `{family.exposed}` | {kind} | {labels} | {_MERGED[family.merge]} | {text} |"


def written(page: str) -> str:
    """Return the page with the tables of now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{tables()}\n\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print("written: docs/metrics.md")
