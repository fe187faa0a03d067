"""Measurements as lines of JSON: several runs add up, and an interrupted run loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def append(result: DataclassInstance, file: Path) -> None:
    """Append one result."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(result)) + "\n")


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    """Yield all results as plain data."""
    yield from map(json.loads, file.read_text().splitlines())
