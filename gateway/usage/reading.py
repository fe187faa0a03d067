"""Reads all records of a folder, and finds out whether any are missing.

A line that cannot be read is counted and left out. If a record comes twice, for example because a
file was copied, it is left out the second time.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gateway.usage.files import closed_files
from gateway.usage.records import Event, Identity, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_LINE = 1 << 20
"""Most bytes of a line. Records have some 500; names of topics up to a few thousand."""

_Record = TypeVar("_Record", bound=Identity)


@dataclass(slots=True)
class Ledger:
    """Counts what was read. `records`: the number of different records. `unreadable`: the number of
    lines that cannot be decoded, and of truncated files. `repeated`: the number of records that
    were there before."""

    records: int = 0
    unreadable: int = 0
    repeated: int = 0
    _seen: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def note(self, record: Identity) -> bool:
        """Count a record. Return False if a record with its process and number was counted before,
        else True."""
        seen = self._seen.setdefault((record.gw, record.boot), set())
        if record.seq in seen:
            self.repeated += 1
            return False
        seen.add(record.seq)
        self.records += 1
        return True

    def missing(self) -> dict[tuple[str, str], int]:
        """Return how many records of each process (`gw`, `boot`) are missing: how many numbers
        before the process's last record have no record. Processes without missing records are left
        out."""
        gaps = {process: max(seen) - len(seen) for process, seen in self._seen.items()}
        return {process: number for process, number in gaps.items() if number}


def usage(folder: Path, ledger: Ledger | None = None) -> Iterator[Usage]:
    """Yield each usage record in a folder once, in the order of the files. `folder`: the folder
    that the setting `usage.folder` names. `ledger`: counts what is read."""
    return _read(folder / "usage", msgspec.json.Decoder(Usage), ledger or Ledger())


def events(folder: Path, ledger: Ledger | None = None) -> Iterator[Event]:
    """Yield the event records in a folder, as `usage` yields usage records."""
    return _read(folder / "events", msgspec.json.Decoder(Event), ledger or Ledger())


def _read(
    folder: Path, decoder: msgspec.json.Decoder[_Record], ledger: Ledger
) -> Iterator[_Record]:
    for path in sorted(closed_files(folder)):
        try:
            for line in lines_of(path, ledger):
                record = _decoded(line, decoder, ledger)
                if record is not None and ledger.note(record):
                    yield record
        except OSError:
            ledger.unreadable += 1


def _decoded(line: bytes, decoder: msgspec.json.Decoder[_Record], ledger: Ledger) -> _Record | None:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        ledger.unreadable += 1
        return None


def lines_of(path: Path, ledger: Ledger) -> Iterator[bytes]:
    """Yield the lines of a file; of a truncated file, only its whole lines. `ledger`: counts
    truncated files. Raises `OSError` if the disk fails."""
    try:
        with gzip.open(path) as file:
            while line := file.readline(LONGEST_LINE):
                yield line
    except FileNotFoundError:  # dropped, as the oldest, meanwhile
        return
    except (gzip.BadGzipFile, EOFError, zlib.error):
        ledger.unreadable += 1
