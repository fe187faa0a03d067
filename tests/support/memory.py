"""The resident memory of a process, as Linux reports it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def resident(process: int) -> int:
    """Return the resident memory of a process now, in bytes."""
    return _stated(process, "VmRSS")


@contextmanager
def grows_by_less_than(most: int, process: int) -> Iterator[None]:
    """Check that within the block a process never has `most` bytes more resident memory than at
    its begin."""
    before = peak(process, reset=True)
    yield
    grown = peak(process) - before
    assert grown < most, f"{grown} bytes of memory more than before"


def peak(process: int, *, reset: bool = False) -> int:
    """Return the largest resident memory of a process, in bytes, since it was last reset.
    `reset`: begin anew, with the resident memory now."""
    if reset:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    return _stated(process, "VmHWM")


def _stated(process: int, name: str) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024
