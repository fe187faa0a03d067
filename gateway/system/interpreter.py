"""The Python interpreter: when it collects garbage, and how to run other modules of the gateway."""

from __future__ import annotations

import gc
import os
import sys

_COLLECTIONS = (700, 10, 1000)
"""Thresholds of garbage collection. The oldest generation has little to find: pairs leave no cycles
when they end. Visiting 10,000 pairs stops the process for 0.1 to 0.2 s, so it happens once per
thousand collections of the middle generation, not once per ten (`make soak PARTS=gc`)."""


def postpone_collections() -> None:
    """Collect nothing until `begin_collections`. Imports leave little garbage, and visiting what
    they make takes 3 % of the time to start."""
    gc.disable()


def begin_collections() -> None:
    """Collect what is made from now on, the oldest generation rarely. Objects that exist now stay
    for the life of the process, so no collection visits them."""
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    gc.enable()


def command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module.

    The child imports from the working folder only if this process does.
    """
    safe = [] if os.getcwd() in sys.path else ["-P"]  # noqa: PTH109 - as Python itself writes it
    return [sys.executable, *safe, "-m", module, *arguments]
