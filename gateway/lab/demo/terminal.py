"""Ctrl-C under `make`: only the demonstration receives it and ends in order; make would fail.

A terminal sends Ctrl-C to every process of its foreground group. With make in that group, the
demonstration would end with 0 and `make run` still with an error. If make started it, the
demonstration therefore takes the foreground while it runs, as a shell does for its jobs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress


@contextmanager
def foreground(environment: Mapping[str, str]) -> Iterator[None]:
    """While the context lasts, the terminal's signals reach this process and not `make`, if `make`
    started it. `environment`: has `MAKELEVEL` under `make`."""
    before = _take_foreground() if "MAKELEVEL" in environment else None
    try:
        yield
    finally:
        if before is not None:
            with suppress(OSError):  # the terminal is gone
                os.tcsetpgrp(sys.stdin.fileno(), before)


def _take_foreground() -> int | None:
    """Return the group that owned the terminal; None if nothing was changed."""
    try:
        terminal = sys.stdin.fileno()
        before = os.tcgetpgrp(terminal)
        if before != os.getpgrp():  # in the background
            return None
        # SIGTTOU stops a process that gives the terminal away from the background, unless ignored.
        # After Ctrl-Z nothing would resume the demonstration: make does not watch for it.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        return before
    except (OSError, ValueError):  # no terminal, or no standard input at all
        return None
