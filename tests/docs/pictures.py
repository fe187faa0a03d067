"""Takes the pictures of docs/pipeline.md, of what `gateway pipeline demo` has written.

python -m tests.docs.pictures pipeline-demo
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.browsing import Page, opened, programs

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"

SHOWN = {
    "pipeline-report.png": ("report.html", (1100, 850)),
    "pipeline-invoice.png": ("invoices/*/invoice-bakery.html", (1100, 1112)),
}
"""The page of each picture, and the size of the window."""


def take(folder: Path) -> None:
    """Write the pictures of the demonstration in a folder."""
    with opened(programs(print)) as browser:
        for name, (pattern, size) in SHOWN.items():
            (path,) = folder.glob(pattern)
            Page(browser, path.resolve().as_uri(), size).picture(PICTURES / name)
            sys.stdout.write(f"taken: docs/pictures/{name}\n")


if __name__ == "__main__":
    take(Path(sys.argv[1]))
