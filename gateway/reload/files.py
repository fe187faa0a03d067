"""What shows that files of rules are others, without reading them.

They are looked at now and then, not watched: Kubernetes swaps a symbolic link far above a file,
which watchers of the file do not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.rules.files import SUFFIXES

Sign = tuple[Path, int, int, int] | tuple[Path]
"""A file, where it is there with its size, number and when it or its rights changed last."""


def signs(paths: Iterable[Path]) -> Iterator[Sign]:
    """Answer a sign of each file of rules, links followed, in any order."""
    for path in paths:
        for file in _files(path):
            yield _sign(file)


def _files(path: Path) -> Iterator[Path]:
    """Of a folder those in it that may be files of rules."""
    try:
        yield from (it for it in path.iterdir() if it.suffix in SUFFIXES)
    except OSError:  # a file, or nothing
        yield path


def _sign(file: Path) -> Sign:
    try:
        status = file.stat()
    except OSError:
        return (file,)
    return file, status.st_size, status.st_ino, status.st_ctime_ns
