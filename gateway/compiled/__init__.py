"""Compiled versions of the hottest loops, and the choice between them and the pure ones.

The pure version of everything is the reference, and works everywhere. A compiled walker passes the
frames that are as every known peer writes them; a pure scanner judges all others. The modules here
are Cython, built where a C compiler is, and an installation without them is complete.
"""

import os
import sys

PURE_BY = "GATEWAY_PURE"
"""The environment variable that chooses the pure version: 1, or anything else but 0."""


def _why_pure() -> str:
    """Return why the pure version is used; empty if the compiled one is."""
    if os.environ.get(PURE_BY, "0") not in ("", "0"):
        return f"{PURE_BY} is set"
    if sys.maxsize < 1 << 32:
        return "a machine of 32 bits, whose offsets a frame's size may exceed"
    try:
        from gateway.compiled import counters, kafka, plane, pulsar, tubemq  # noqa: F401
    except ImportError as error:
        return f"not built: {error}"
    return ""


WHY_PURE = _why_pure()
COMPILED = not WHY_PURE
IMPLEMENTATION = "compiled" if COMPILED else "pure"
