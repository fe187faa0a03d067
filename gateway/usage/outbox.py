"""Finds the files that must still be sent to topics: the closed files of this gateway that have no
marker.

A marker is an empty file beside a file that was sent, so the gateway knows even after a crash that
it was sent. `files` removes a marker together with its file. If a pipeline has taken the file
alone, this module removes the marker. A file without a marker may be sent twice; readers recognize
repeated records by their identity.

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
    """A closed file that was not sent yet. `stream`: the kind of its records. `name`: the parts of
    the file's name."""

    path: Path
    stream: str
    name: FileName

    @property
    def records(self) -> int:
        """Return the number of records in the file by its name, dropped records included."""
        return self.name.last - self.name.first + 1

    @property
    def hour(self) -> tuple[str, str]:
        """Return the names of the file's folders: day and hour when it was closed, such as
        `dt=2026-01-31`, `hr=09`. They sort by time."""
        return self.path.parent.parent.name, self.path.parent.name


@dataclass(slots=True)
class _Hour:
    """A folder as it was last read. `changed`: when it was last changed, in nanoseconds since
    1970."""

    changed: int
    parcels: Sequence[Parcel]


class Outbox:
    """The unsent files of a gateway, including those of its workers (`edge-1-w2`). `folder`: the
    folder of all records. `streams`: the kinds of records that are sent."""

    def __init__(self, folder: Path, gateway: str, streams: Iterable[str]) -> None:
        self._folder = folder
        self._own = re.compile(rf"{re.escape(gateway)}(-w\d+)?")
        self._streams = tuple(streams)
        self._hours: dict[Path, _Hour] = {}

    def waiting(self, now: float) -> list[Parcel]:
        """Return all files to send. The files of one process are in the order of their records. The
        processes are in the order in which their first files were closed. `now`: seconds since
        1970. Raises `OSError`."""
        parcels: list[Parcel] = []
        hours: dict[Path, _Hour] = {}
        for stream in self._streams:
            for folder in (self._folder / stream).glob("dt=*/hr=*"):
                with suppress(FileNotFoundError, NotADirectoryError):
                    hour = self._read(folder, stream)
                    parcels += hour.parcels
                    if now - hour.changed / 1e9 > SETTLED:
                        hours[folder] = hour
        self._hours = hours
        return _ordered(parcels)

    def mark(self, parcel: Parcel) -> None:
        """Write the marker of a file that was sent. Raises `OSError`."""
        with suppress(FileNotFoundError):  # a pipeline has taken all of its hour
            marker_of(parcel.path).touch()

    def _read(self, folder: Path, stream: str) -> _Hour:
        changed = folder.stat().st_mtime_ns  # before reading, so that a later change is noticed
        known = self._hours.get(folder)
        if known is not None and known.changed == changed:
            return known
        names = {file.name for file in folder.iterdir()}
        _drop_orphans(folder, names)
        return _Hour(changed, list(self._parcels(folder, stream, names)))

    def _parcels(self, folder: Path, stream: str, names: set[str]) -> Iterator[Parcel]:
        for file_name in names:
            path = folder / file_name
            name = name_of(path)
            if name and self._own.fullmatch(name.gw) and marker_of(path).name not in names:
                yield Parcel(path, stream, name)


def _drop_orphans(folder: Path, names: set[str]) -> None:
    """Remove markers whose files are gone."""
    for file_name in names:
        if file_name.endswith(SENT) and file_name[1:].removesuffix(SENT) + SUFFIX not in names:
            (folder / file_name).unlink(missing_ok=True)


def _ordered(parcels: list[Parcel]) -> list[Parcel]:
    began: dict[tuple[str, str, str], tuple[str, str]] = {}
    for parcel in parcels:
        run = (parcel.stream, parcel.name.gw, parcel.name.boot)
        began[run] = min(began.get(run, parcel.hour), parcel.hour)

    def place(parcel: Parcel) -> tuple[tuple[str, str], str, str, str, int]:
        run = (parcel.stream, parcel.name.gw, parcel.name.boot)
        return (began[run], *run, parcel.name.first)

    return sorted(parcels, key=place)
