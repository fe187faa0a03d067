"""Detects that files have changed by their size, inode and ctime, without reading them.

Files are polled, not watched, because Kubernetes swaps a symbolic link far above a file, which
watchers of the file do not notice.
"""

from __future__ import annotations

from pathlib import Path

LOOK = 2.0
"""Seconds between two looks at files. A change is taken once two looks have seen the same, so that
no half-written file is read; Kubernetes itself takes up to a minute to deliver one."""

Sign = tuple[Path, int, int, int] | tuple[Path]
"""A file's path, and if it exists its size, inode and ctime in nanoseconds."""


def sign(file: Path) -> Sign:
    """Return the `Sign` of a file: its path, size, inode and ctime. If the file changes, its `Sign`
    differs. Symbolic links are followed."""
    try:
        status = file.stat()
    except OSError:
        return (file,)
    return file, status.st_size, status.st_ino, status.st_ctime_ns
