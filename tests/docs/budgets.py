"""`python -m tests.docs.budgets`: writes the folders of tests, with their budgets, into
CONTRIBUTING.md. A test holds the page to the code.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tiers import FOLDERS

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
BEGIN, END = "<!-- generated: make metrics -->\n", "<!-- generated until here -->"


def written(page: str) -> str:
    """Return the page with the table of now."""
    rows = (
        f"| `{name}` | {it.tier} | {it.budget or ''} | {it.purpose} |\n"
        for name, it in FOLDERS.items()
    )
    head = "| `tests/` | tier | budget, s | what its tests show |\n|---|---|---|---|\n"
    new = f"{BEGIN}{head}{''.join(rows)}{END}"
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: new, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print("written: CONTRIBUTING.md")
