"""The Python interpreter: how often it collects garbage, and how to run other modules of the
gateway.
"""

from __future__ import annotations

import gc
import os
import sys

_COLLECTIONS = (700, 10, 1000)
"""Thresholds of garbage collection. The oldest generation has little to find: pairs leave no cycles
when they end, and imports leave few. Visiting 10,000 pairs stops the process for 0.1 to 0.2 s, and
a visit during imports takes 10 ms of the start, so it happens once per thousand collections of the
middle generation rather than per ten. Measured: `make soak PARTS=gc`."""


def collect_rarely() -> None:
    """Collect the oldest generation rarely."""
    gc.set_threshold(*_COLLECTIONS)


def command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module.

    The child imports from the working folder only if this process does.
    """
    safe = [] if os.getcwd() in sys.path else ["-P"]  # noqa: PTH109 - as Python itself writes it
    return [sys.executable, *safe, "-m", module, *arguments]
