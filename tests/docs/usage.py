"""`python -m tests.docs.usage`: writes docs/usage.schema.json from the classes of records.

A test holds the file to the code.
"""

from __future__ import annotations

import json
from pathlib import Path

from gateway.usage.records import schemas

PAGE = Path(__file__).resolve().parents[2] / "docs" / "usage.schema.json"


def written() -> str:
    """Return the file of now."""
    return json.dumps(schemas(), indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
    print("written: docs/usage.schema.json")
