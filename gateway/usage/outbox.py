"""The files that a topic is still to get: closed ones of this gateway, without a marker.

A marker is an empty file beside the file that was sent, and says so to whoever looks later, after a
crash too. It goes when its file goes: `files` removes both, and what a pipeline took alone is found
here. Files without a marker are sent again, and records are known by their identity.

All functions here block.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.usage.files import SENT, SUFFIX, FileName, marker_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SETTLED = 2.0
"""Seconds without a change after which a folder is not read again until its time changes. Files
that are made in the same tick of a file system's clock do not change it; NFS keeps seconds."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A closed file that was not sent. `stream`: its kind of records."""

    path: Path
    stream: str
    name: FileName

    @property
    def records(self) -> int:
        """Return how many records the file has, if none was dropped."""
        return self.name.last - self.name.first + 1

    @property
    def hour(self) -> tuple[str, str]:
        """Return when the file was closed, to be compared."""
        return self.path.parent.parent.name, self.path.parent.name


@dataclass(slots=True)
class _Hour:
    """A folder as it was read last. `changed`: its time, in nanoseconds."""

    changed: int
    parcels: Sequence[Parcel]


class Outbox:
    """The unsent files of a gateway, those of its workers included (`edge-1-w2`)."""

    def __init__(self, folder: Path, gateway: str, streams: Iterable[str]) -> None:
        self._folder = folder
        self._own = re.compile(rf"{re.escape(gateway)}(-w\d+)?")
        self._streams = tuple(streams)
        self._hours: dict[Path, _Hour] = {}

    def waiting(self, now: float) -> list[Parcel]:
        """Return all files to send: of each process in the order of its records, and processes in
        the order in which their first file was closed. `now`: seconds since 1970. Raises `OSError`.
        """
        found: list[Parcel] = []
        hours: dict[Path, _Hour] = {}
        for stream in self._streams:
            for folder in (self._folder / stream).glob("dt=*/hr=*"):
                with suppress(FileNotFoundError, NotADirectoryError):
                    hour = self._read(folder, stream)
                    found += hour.parcels
                    if now - hour.changed / 1e9 > SETTLED:
                        hours[folder] = hour
        self._hours = hours
        return _ordered(found)

    def mark(self, parcel: Parcel) -> None:
        """Remember that a file was sent. Raises `OSError`."""
        with suppress(FileNotFoundError):  # a pipeline has taken all of its hour
            marker_of(parcel.path).touch()

    def _read(self, folder: Path, stream: str) -> _Hour:
        changed = folder.stat().st_mtime_ns  # before reading, so that a later change is noticed
        known = self._hours.get(folder)
        if known is not None and known.changed == changed:
            return known
        names = {it.name for it in folder.iterdir()}
        _drop_orphans(folder, names)
        return _Hour(changed, list(self._parcels(folder, stream, names)))

    def _parcels(self, folder: Path, stream: str, names: set[str]) -> Iterator[Parcel]:
        for it in names:
            path = folder / it
            name = name_of(path)
            if name and self._own.fullmatch(name.gw) and marker_of(path).name not in names:
                yield Parcel(path, stream, name)


def _drop_orphans(folder: Path, names: set[str]) -> None:
    """Remove markers whose files are gone."""
    for it in names:
        if it.endswith(SENT) and it[1:].removesuffix(SENT) + SUFFIX not in names:
            (folder / it).unlink(missing_ok=True)


def _ordered(parcels: list[Parcel]) -> list[Parcel]:
    began: dict[tuple[str, str, str], tuple[str, str]] = {}
    for it in parcels:
        run = (it.stream, it.name.gw, it.name.boot)
        began[run] = min(began.get(run, it.hour), it.hour)

    def place(it: Parcel) -> tuple[tuple[str, str], str, str, str, int]:
        run = (it.stream, it.name.gw, it.name.boot)
        return (began[run], *run, it.name.first)

    return sorted(parcels, key=place)
