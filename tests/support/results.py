"""Results of measurements as lines of JSON: they add up over several runs, and one that is
interrupted loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def append(result: DataclassInstance, file: Path) -> None:
    """Add one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(result)) + "\n")


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    """All of them, as plain data."""
    yield from map(json.loads, file.read_text().splitlines())
