"""Alerts as JSON lines, one for each time that one is told."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import Row

TAIL = 1 << 20
"""Bytes at the end of a file in which a killed run may have written lines already: thousands of
alerts."""

FIELDS = (
    *("cluster", "culprit", "start_ms", "end_ms", "slots", "victims", "share", "z", "growth"),
    *("slower", "held_ms", "told_ms"),
)


def line(alert: Row) -> str:
    """Return an alert as a line. The same row gives the same line."""
    times = {name: _time(alert[f"{name}_ms"]) for name in ("start", "end")}
    kind = "new" if alert.is_new else "grown"
    return json.dumps({"alert": kind, **times, **{name: alert[name] for name in FIELDS}})


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def append(path: Path, lines: Iterable[str]) -> None:
    """Add lines to a file, but for those at its end: a run that was killed has written them. What
    it wrote of half a line is removed. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL))
        tail = file.read()
        whole, _, torn = tail.rpartition(b"\n")
        if torn:
            file.truncate(size - len(torn))
        known = set(whole.splitlines())
        for it in lines:
            data = it.encode()
            if data not in known:
                file.write(data + b"\n")
        file.flush()
        os.fsync(file.fileno())
