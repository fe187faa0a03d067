"""Closed files of records, for tests of what sends them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gateway.telemetry.figures import StreamFigures
from gateway.usage.files import Closing, Stream
from gateway.usage.records import VERSION, Event, Identity, Usage

BOOT = "0123456789abcdef"
NOON = 1_795_521_600.0  # 2026-11-24 12:00 UTC
HOUR = 3600.0


def usage(seq: int, boot: str = BOOT, **fields: object) -> Usage:
    identity = {"v": VERSION, "gw": "edge", "boot": boot, "seq": seq}
    return Usage(**identity, start_ms=7, dur_ms=1000, op="send", **fields)  # type: ignore[arg-type]


def event(seq: int) -> Event:
    return Event(v=VERSION, gw="edge", boot=BOOT, seq=seq, time_ms=9, event="connected")


def close(
    folder: Path,
    records: Sequence[Identity],
    *,
    gw: str = "edge",
    stream: str = "usage",
    at: float = NOON,
) -> Path:
    """Write a closed file of records, and return its path."""
    made = Stream(folder / stream, gw, records[0].boot, Closing(after=1 << 30), StreamFigures())
    lines = b"".join(msgspec.json.encode(it) + b"\n" for it in records)
    made.append(lines, records[0].seq, records[-1].seq, at)
    made.close(at)
    return made._kept[-1][0]
