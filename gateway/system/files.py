"""Detects changed files by size, inode and ctime, without reading them.

Files are polled, not watched: Kubernetes swaps a symbolic link far above a file, and watchers of
the file do not notice.
"""

from __future__ import annotations

from pathlib import Path

LOOK = 2.0
"""Seconds between two looks at files. A change is taken once two looks have seen the same, so that
no half-written file is read; Kubernetes itself takes up to a minute to deliver one."""

Sign = tuple[Path, int, int, int] | tuple[Path]
"""A file's path, and if it exists its size, inode and ctime in nanoseconds."""


def sign(file: Path) -> Sign:
    """Return the `Sign` of a file, which differs once the file has changed. Follows links."""
    try:
        status = file.stat()
    except OSError:
        return (file,)
    return file, status.st_size, status.st_ino, status.st_ctime_ns
