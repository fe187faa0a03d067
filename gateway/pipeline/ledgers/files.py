"""Files of snapshots: JSON lines in gzip, one file for each snapshot, which never changes.

    FOLDER/dt=2026-11-24/main-1795521600000.jsonl.gz
    FOLDER/.main-1795521600000.jsonl.gz.tmp

The second is open: its name begins with a dot, and readers leave it out. It is locked (`flock`), so
the next snapshot of the same cluster can tell what a killed one left behind, and removes it. A file
is synced before it gets its name. The folder is of the day on which the snapshot began, in UTC.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import TypeAlias

    from gateway.pipeline.ledgers.snapshot import Snapshot, Taken

    Append: TypeAlias = Callable[[Snapshot], None]

SUFFIX = ".jsonl.gz"
OPEN = f"{SUFFIX}.tmp"

CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,70}")
"""Names of clusters, which become names of files."""

_LEVEL = 6
"""Of compression, as of the files of usage records."""


def path_of(folder: Path, taken: Taken) -> Path:
    """Return the path of a snapshot's file."""
    day = time.strftime("dt=%Y-%m-%d", time.gmtime(taken.snap_ms / 1000))
    return folder / day / f"{taken.cluster}-{taken.snap_ms}{SUFFIX}"


@contextmanager
def written(folder: Path, taken: Taken) -> Iterator[Append]:
    """Yield what appends a record. The file gets its name at the end, and is removed if anything
    was raised. Raises `OSError`."""
    final = path_of(folder, taken)
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder, taken.cluster)
    path = folder / f".{final.name.removesuffix(SUFFIX)}{OPEN}"
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
                yield lambda record: _line(packed, encode(record))
            file.flush()
            os.fsync(file.fileno())
            path.rename(final)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    for changed in (final.parent, folder):
        _sync(changed)


def _line(packed: gzip.GzipFile, line: bytes) -> None:
    packed.write(line)
    packed.write(b"\n")


def _remove_abandoned(folder: Path, cluster: str) -> None:
    """Remove open files of this cluster whose process is gone."""
    name = re.compile(rf"\.{re.escape(cluster)}-\d+{re.escape(OPEN)}")
    for path in folder.glob(f".*{OPEN}"):
        if name.fullmatch(path.name):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
