"""Processes of gateways that write a made-up month, by the very code that writes real records.

`gateway.usage.files` numbers nothing and knows no sums, so a pen numbers and encodes what it
writes, and remembers for each gzip member where it ends and what it holds: what can be read of a
file that is cut is then known exactly.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gateway.pipeline.demo.planted import Used
from gateway.telemetry.figures import StreamFigures
from gateway.usage.files import SUFFIX, Closing, Stream
from gateway.usage.records import STREAMS, Event, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_NEVER = Closing(after=1e12, size=1 << 62, kept=1 << 62)
"""Files are closed by the hour alone, and all are kept."""


class Member(NamedTuple):
    """A gzip member: the records of one interval. `end`: bytes of the file up to its end."""

    end: int
    records: int
    used: Mapping[str, Used]


class Closed(NamedTuple):
    """A file that has its name. `start_ms`, `end_ms`: of what its records tell."""

    path: Path
    gw: str
    boot: str
    start_ms: int
    end_ms: int
    members: tuple[Member, ...]

    @property
    def records(self) -> int:
        return sum(it.records for it in self.members)


class Pen:
    """Writes one stream of a process."""

    def __init__(
        self, folder: Path, kind: str, gw: str, boot: str, owners: Mapping[str, str]
    ) -> None:
        assert kind in STREAMS
        self._folder = folder / kind
        self._gw, self._boot = gw, boot
        self._owners = owners
        self._figures = StreamFigures()
        self._stream = Stream(self._folder, gw, boot, _NEVER, self._figures)
        self._stream.begin()
        self._encode = msgspec.json.Encoder().encode_lines
        self._next = self._first = 1
        self._begun = 0  # bytes of all files before the open one
        self._members: list[Member] = []
        self._times = 0, 0

    def write(self, records: Sequence[Usage | Event], start_ms: int, end_ms: int) -> None:
        """Write the records of an interval, if there are some, as its end has come."""
        if not records:
            return
        first = self._next
        for number, record in enumerate(records, first):
            record.seq = number
        self._next += len(records)
        self._stream.append(self._encode(records), first, self._next - 1, end_ms / 1000)
        if not self._members:
            self._times = start_ms, end_ms
        self._times = self._times[0], end_ms
        end = self._figures.bytes - self._begun
        self._members.append(Member(end, len(records), self._used(records)))

    def close(self, now_ms: int) -> Closed | None:
        """Close the file; None: there is none."""
        if not self._members:
            return None
        self._stream.close(now_ms / 1000)
        name = f"{self._gw}-{self._boot}-{self._first:012}-{self._next - 1:012}{SUFFIX}"
        path = folder_of(self._folder, now_ms) / name
        closed = Closed(path, self._gw, self._boot, *self._times, tuple(self._members))
        self._first, self._begun, self._members = self._next, self._figures.bytes, []
        return closed

    def _used(self, records: Sequence[Usage | Event]) -> dict[str, Used]:
        sums: dict[str, list[int]] = {}
        for it in records:
            if isinstance(it, Usage) and it.op != "latency":
                tenant = self._owners[it.principal or ""] if it.op == "connect" else it.tenant
                found = sums.setdefault(tenant or "", [0] * len(Used._fields))
                if it.op == "connect":
                    found[4] += it.open_ms
                else:
                    way = 0 if it.op == "send" else 1
                    found[way] += it.msgs
                    found[2 + way] += it.bytes_wire
        return {tenant: Used(*found) for tenant, found in sums.items()}


class Process:
    """One run of a gateway: its two streams."""

    def __init__(self, folder: Path, gw: str, boot: str, owners: Mapping[str, str]) -> None:
        self.gw, self.boot = gw, boot
        self.usage = Pen(folder, "usage", gw, boot, owners)
        self.events = Pen(folder, "events", gw, boot, owners)


class Account:
    """Adds up what can be read."""

    def __init__(self) -> None:
        self.records = 0
        self.missing: Counter[tuple[str, str]] = Counter()
        self.used: dict[str, Used] = {}

    def add(self, closed: Closed, members: int | None = None) -> int:
        """Add a file, or its first `members`; return how many records of it are lost."""
        kept = closed.members[:members]
        for member in kept:
            self.records += member.records
            for tenant, used in member.used.items():
                self.used[tenant] = self.used.get(tenant, Used()).plus(used)
        lost = closed.records - sum(it.records for it in kept)
        if lost:
            self.missing[closed.gw, closed.boot] += lost
        return lost


def folder_of(stream: Path, now_ms: int) -> Path:
    """Return the folder of files that are closed at a time."""
    when = time.gmtime(now_ms / 1000)
    return stream / time.strftime("dt=%Y-%m-%d", when) / time.strftime("hr=%H", when)
