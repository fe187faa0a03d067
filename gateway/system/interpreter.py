"""The interpreter that runs us: how often it collects, and how it runs other modules of ours."""

from __future__ import annotations

import gc
import os
import sys

_COLLECTIONS = (700, 10, 1000)
"""The oldest generation has little to find, for pairs leave no cycles when they end, and imports
leave few. To walk through 10,000 pairs stops everybody for 0.1 to 0.2 s, and a walk while modules
are imported takes 10 ms of a start: once for a thousand collections of the middle generation, in
place of ten. Measured: `make soak PARTS=gc`."""


def collect_rarely() -> None:
    """Have the oldest generation collected rarely."""
    gc.set_threshold(*_COLLECTIONS)


def command(module: str, *arguments: str) -> list[str]:
    """What runs a module.

    Where we do not look for modules in the working folder, it does not either.
    """
    safe = [] if os.getcwd() in sys.path else ["-P"]  # noqa: PTH109 - as Python itself writes it
    return [sys.executable, *safe, "-m", module, *arguments]
