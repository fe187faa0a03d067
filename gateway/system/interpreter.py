"""Sets when Python collects garbage, and how much freed memory it keeps; makes commands that run
modules."""

from __future__ import annotations

import gc
import os
import sys

_COLLECTIONS = (700, 10, 1000)
"""Thresholds of garbage collection. The oldest generation has little to find: pairs leave no cycles
when they end. Visiting 10,000 pairs stops the process for 0.1 to 0.2 s, so it happens once per
thousand collections of the middle generation, not once per ten (`make soak PARTS=gc`)."""


def postpone_collections() -> None:
    """Turn garbage collection off until `begin_collections` is called. Imports leave little
    garbage, and without this the collector would take 3 % of the time to start, visiting the
    objects that imports make."""
    gc.disable()


def begin_collections() -> None:
    """Turn garbage collection on; the oldest generation is collected rarely. The objects that exist
    now are kept for the life of the process, and no collection visits them."""
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    gc.enable()


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's `mallopt`, from its `malloc.h`."""

_KEPT = 8 << 20
"""Bytes at the end of the heap that stay with the process, and below which memory comes from the
heap. By default glibc gives memory back soon that held a frame of some hundred kilobytes, and the
kernel clears each of its pages anew for the next such frame, which takes longer than the frame
itself."""


def keep_freed_memory() -> None:
    """Make glibc keep some megabytes of freed memory for the next frames. This does nothing if
    another library allocates memory, or if the environment configures glibc (`MALLOC_…`)."""
    import ctypes  # of the modules here, this one alone takes milliseconds

    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)


def command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module in a child process.

    The child process imports modules from the working folder only if this process does.
    """
    safe = [] if os.getcwd() in sys.path else ["-P"]  # noqa: PTH109 - as Python itself writes it
    return [sys.executable, *safe, "-m", module, *arguments]
