"""Ctrl-C under `make`: it is for the demo, which ends in order, and not for make, which dies of it.

A terminal sends Ctrl-C to every process of its foreground group, and make is in it: the demo would
end with 0, and `make run` with an error all the same. So where make started it, the demo takes the
foreground for itself as long as it runs, as a shell does for its jobs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress


@contextmanager
def foreground(environment: Mapping[str, str]) -> Iterator[None]:
    """Have the terminal's signals alone, where make is the parent and has the terminal."""
    before = _take() if "MAKELEVEL" in environment else None
    try:
        yield
    finally:
        if before is not None:
            with suppress(OSError):  # the terminal is gone
                os.tcsetpgrp(sys.stdin.fileno(), before)


def _take() -> int | None:
    """The group that had the terminal; None where it stays as it is."""
    try:
        terminal = sys.stdin.fileno()
        before = os.tcgetpgrp(terminal)
        if before != os.getpgrp():  # in the background
            return None
        # Giving a terminal away from the background stops a process that does not ignore it. And
        # nobody would wake the demo if Ctrl-Z put it to sleep: make does not look.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        return before
    except (OSError, ValueError):  # no terminal, or no standard input at all
        return None
