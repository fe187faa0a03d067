"""Files of records: JSON lines in gzip, in folders by day and hour. A file never changes after it
is closed.

    usage/dt=2026-11-24/hr=07/edge-1-5f0c…-000000000001-000000000360.jsonl.gz
    usage/.edge-1-5f0c…-000000000361.jsonl.gz.tmp

The first of these files is closed. The second is still open: its name begins with a dot, and
readers leave such files out. Each append is a gzip member of its own. So if a process is killed,
its file is whole up to the last complete append, and a file can be closed even if the disk is full.
The process holds a lock on its open file (`flock`). If a gateway finds an open file without a lock
when it starts, it cuts off the incomplete end and closes the file.

If the records of a closed file were sent to a topic (`outbox`), the file has a marker beside it. A
marker is an empty file, which readers leave out too:
`.edge-1-5f0c…-000000000001-000000000360.jsonl.gz.sent`.

A file is closed when it has a certain age or size. It is synced before it is renamed to its final
name, so a file with this name is whole even after a crash of the machine. The folders name the time
at which files were closed; each record has a time of its own.

All functions here block, so they must run in a thread.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import zlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gateway.telemetry.figures import StreamFigures

SUFFIX = ".jsonl.gz"
OPEN = f"{SUFFIX}.tmp"
SENT = f"{SUFFIX}.sent"

GATEWAY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,70}")
"""A gateway's name, as configured or the host's, with the number of a worker."""

_CLOSED = re.compile(
    rf"(?P<gw>{GATEWAY.pattern})-(?P<boot>[0-9a-f]{{16}})-(?P<first>\d{{12}})-(?P<last>\d{{12}})"
)
_OPENED = re.compile(rf"\.(?P<head>{GATEWAY.pattern}-[0-9a-f]{{16}})-\d{{12}}")

_LEVEL = 6
"""The level of compression: 15 to 25 MB/s, to a tenth of the size."""

_GZIP = 16 + zlib.MAX_WBITS

_PIECE = 1 << 16
"""Bytes of a file that are read at a time."""

MOST_FILES = 100_000
"""Most closed files of one stream: their names are kept in memory, at 300 bytes each."""


@dataclass(frozen=True, slots=True)
class Closing:
    """Bounds of files. `after`: seconds after which a file is closed. `size`: compressed bytes at
    which a file is closed. `kept`: the most bytes of closed files; beyond that the oldest files are
    removed."""

    after: float = 60.0
    size: int = 64 << 20
    kept: int = 1 << 30


@dataclass(slots=True)
class _Open:
    """An open file. `until`: when to close it, in seconds since 1970."""

    descriptor: int
    path: Path
    first: int
    until: float
    last: int = 0
    size: int = 0


class Stream:
    """The files of one kind of records that one process writes. `gw`: the name of the process.
    `boot`: the name of this run of it. `is_sent`: the records are sent to a topic too. Methods
    raise `OSError`."""

    def __init__(
        self,
        folder: Path,
        gw: str,
        boot: str,
        closing: Closing,
        figures: StreamFigures,
        *,
        is_sent: bool = False,
    ) -> None:
        self.folder = folder
        self._head = f"{gw}-{boot}"
        self._gw = gw
        self._closing = closing
        self._figures = figures
        self._is_sent = is_sent
        self._open: _Open | None = None
        self._kept: deque[tuple[Path, int]] = deque()
        self._size = 0  # bytes of closed files

    def begin(self) -> None:
        """Create the folder, close the files that killed processes have left open, and find the
        closed files of this gateway."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.glob(f".*{OPEN}")):
            recover(path)
        own = (
            file for file in closed_files(self.folder) if (n := name_of(file)) and n.gw == self._gw
        )
        for path in sorted(own, key=_age):
            with suppress(FileNotFoundError):
                self._keep(path, path.stat().st_size)
        self._drop_oldest()

    def append(self, lines: bytes | bytearray, first: int, last: int, now: float) -> None:
        """Append lines to the open file. `first`, `last`: the numbers of the first and of the last
        record in these lines. `now`: seconds since 1970."""
        if self._open is None:
            self._open = self._create(first, now)
        opened = self._open
        packing = zlib.compressobj(_LEVEL, wbits=_GZIP)
        data = packing.compress(lines) + packing.flush()
        try:
            _write(opened.descriptor, data)
        except OSError:
            os.ftruncate(opened.descriptor, opened.size)
            os.lseek(opened.descriptor, opened.size, os.SEEK_SET)
            raise
        opened.size += len(data)
        opened.last = last
        self._figures.written += last - first + 1
        self._figures.bytes += len(data)
        self.close_old(now)

    def close_old(self, now: float) -> None:
        """Close the open file if it is old or large enough. `now`: seconds since 1970."""
        opened = self._open
        if opened is not None and (now >= opened.until or opened.size >= self._closing.size):
            self.close(now)

    def close(self, now: float) -> None:
        """Close the open file, if there is one. `now`: seconds since 1970."""
        opened, self._open = self._open, None
        if opened is None:
            return
        try:
            if not opened.size:  # nothing could be written
                opened.path.unlink(missing_ok=True)
                return
            path = _rename(opened.descriptor, opened.path, self._head, opened, now)
        finally:
            os.close(opened.descriptor)
        self._figures.files += 1
        self._keep(path, opened.size)
        self._drop_oldest()

    def _create(self, first: int, now: float) -> _Open:
        self.folder.mkdir(parents=True, exist_ok=True)  # somebody may have removed it
        path = self.folder / f".{self._head}-{first:012}{OPEN}"
        # It gets its name only once it is locked, or another process could close it as abandoned.
        fresh = path.with_name(f".{self._head}.fresh")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fresh.rename(path)
        except BaseException:
            os.close(descriptor)
            raise
        return _Open(descriptor, path, first, now + self._closing.after)

    def _keep(self, path: Path, size: int) -> None:
        self._kept.append((path, size))
        self._size += size

    def _drop_oldest(self) -> None:
        while self._kept and (self._size > self._closing.kept or len(self._kept) > MOST_FILES):
            path, size = self._kept.popleft()
            self._size -= size
            with suppress(FileNotFoundError):  # a pipeline has taken it
                path.unlink()
                self._figures.removed += 1
                self._drop_marker(path)

    def _drop_marker(self, path: Path) -> None:
        """Remove the marker of a file that was removed; without one, count its records."""
        try:
            marker_of(path).unlink()
        except FileNotFoundError:
            named = name_of(path)
            if self._is_sent and named is not None:
                self._figures.unsent += named.last - named.first + 1


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of a closed file's name. `gw`, `boot`: the process that wrote the file, and the run
    of this process. `first`, `last`: the numbers of its first and last record."""

    gw: str
    boot: str
    first: int
    last: int


def name_of(path: Path) -> FileName | None:
    """Return the parts of a closed file's name; None for any other file."""
    match = _CLOSED.fullmatch(path.name.removesuffix(SUFFIX))
    if match is None or not path.name.endswith(SUFFIX):
        return None
    return FileName(match["gw"], match["boot"], int(match["first"]), int(match["last"]))


def marker_of(path: Path) -> Path:
    """Return the path of a closed file's marker, which exists if the file was sent to a topic."""
    return path.with_name(f".{path.name.removesuffix(SUFFIX)}{SENT}")


def closed_files(folder: Path) -> Iterator[Path]:
    """Yield the paths of all closed files in the folder of a stream, whichever gateway wrote
    them."""
    for path in folder.glob(f"dt=*/hr=*/*{SUFFIX}"):
        if name_of(path) is not None:
            yield path


def recover(path: Path) -> Path | None:
    """Close a file that a killed process has left open, and return its new path; None if the file
    is empty, or if a process still has it open.

    Several processes may call this for one file at the same time: only the one that gets the file's
    lock closes it.
    """
    named = _OPENED.fullmatch(path.name.removesuffix(OPEN))
    if named is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have closed it between the two.
        if not path.exists() or os.fstat(descriptor).st_ino != path.stat().st_ino:
            return None
        whole = _whole_part(descriptor)
        if whole is None:
            path.unlink()
            return None
        closed_at = path.stat().st_mtime
        os.ftruncate(descriptor, whole.size)
        return _rename(descriptor, path, named["head"], whole, closed_at)
    except BlockingIOError:
        return None
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Whole:
    """The part of a file that was written completely."""

    size: int
    first: int
    last: int


def _whole_part(descriptor: int) -> _Whole | None:
    whole: _Whole | None = None
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        for size, lines in _members(file):
            try:
                begin, _, end = lines.strip().partition(b"\n")
                first = json.loads(begin)["seq"]
                last = json.loads(end.rpartition(b"\n")[2] or begin)["seq"]
            except (ValueError, LookupError, TypeError):
                break
            whole = _Whole(size, first if whole is None else whole.first, last)
    return whole


def _members(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield for each whole gzip member where it ends, and what it holds."""
    at, rest = 0, b""
    while True:
        unpacking = zlib.decompressobj(wbits=_GZIP)
        lines: list[bytes] = []
        while not unpacking.eof:
            piece = rest or file.read(_PIECE)
            rest = b""
            if not piece:
                return
            try:
                lines.append(unpacking.decompress(piece))
            except zlib.error:
                return
            at += len(piece)
        rest = unpacking.unused_data  # of the next member, and counted again with it
        at -= len(rest)
        yield at, b"".join(lines)


def _rename(
    descriptor: int, path: Path, head: str, numbers: _Open | _Whole, closed_at: float
) -> Path:
    """Give a closed file its final name, in the folder of the hour."""
    os.fsync(descriptor)
    when = time.gmtime(closed_at)
    folder = path.parent / time.strftime("dt=%Y-%m-%d", when) / time.strftime("hr=%H", when)
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{head}-{numbers.first:012}-{numbers.last:012}{SUFFIX}"
    path.rename(final)
    _sync_folders(folder, path.parent)
    return final


def _sync_folders(*folders: Path) -> None:
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _age(path: Path) -> tuple[str, str, float]:
    """Return a key that sorts files by when they were closed."""
    with suppress(FileNotFoundError):
        return path.parent.parent.name, path.parent.name, path.stat().st_mtime
    return path.parent.parent.name, path.parent.name, 0.0
