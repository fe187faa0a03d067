"""`python -m tests.docs.budgets`: writes the folders of tests, with their budgets, into
CONTRIBUTING.md. A test holds the page to the code.
"""

from __future__ import annotations

from pathlib import Path

from tests.docs import regions
from tests.support.tiers import FOLDERS

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


def table() -> str:
    """Return the table of the folders of tests."""
    rows = (
        f"| `{name}` | {it.tier} | {it.budget or ''} | {it.purpose} |\n"
        for name, it in FOLDERS.items()
    )
    head = "| `tests/` | tier | budget, s | what its tests show |\n|---|---|---|---|\n"
    return head + "".join(rows)


TEXTS = {"budgets": table}


if __name__ == "__main__":
    regions.write(PAGE, TEXTS)
