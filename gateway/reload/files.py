"""Detects changes of the files of rules; see `gateway.system.files`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway.rules.files import SUFFIXES
from gateway.system.files import Sign, sign


def signs(paths: Iterable[Path]) -> Iterator[Sign]:
    """Yield the `Sign` (path, size, inode and ctime) of each file of rules, in any order. Symbolic
    links are followed."""
    for path in paths:
        for file in _files(path):
            yield sign(file)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of rules in a folder, or the path itself."""
    try:
        yield from (entry for entry in path.iterdir() if entry.suffix in SUFFIXES)
    except OSError:  # a file, or missing
        yield path
