"""Detects changed files of rules by size, inode and ctime, without reading them.

The files are polled, not watched: Kubernetes swaps a symbolic link far above a file, and watchers
of the file do not notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.rules.files import SUFFIXES

Sign = tuple[Path, int, int, int] | tuple[Path]
"""A file, and if it exists its size, inode and ctime in nanoseconds."""


def signs(paths: Iterable[Path]) -> Iterator[Sign]:
    """Yield the sign of each file of rules, following links, in any order."""
    for path in paths:
        for file in _files(path):
            yield _sign(file)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of rules in a folder, or the path itself."""
    try:
        yield from (it for it in path.iterdir() if it.suffix in SUFFIXES)
    except OSError:  # a file, or missing
        yield path


def _sign(file: Path) -> Sign:
    try:
        status = file.stat()
    except OSError:
        return (file,)
    return file, status.st_size, status.st_ino, status.st_ctime_ns
