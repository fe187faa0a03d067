"""Chooses between compiled modules and their sources, before any of them is imported.

Scanners and the loops of the data plane are modules of Python that Cython compiles by the types in
a `.pxd` beside each: one source for both. They are built where a C compiler is, and an installation
without one is complete. Modules that name each other's C types must be compiled together. So if one
of them is missing, Python imports the sources of all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

PURE_BY = "GATEWAY_PURE"
"""The environment variable that chooses the sources: 1, or anything but 0."""

BUILT = (
    "wire/counters",
    "wire/scanner",
    "plane/fairness",
    "plane/moving",
    "plane/rounds",
    "wire/pulsar/canonical",
    "wire/pulsar/to_broker",
    "wire/pulsar/to_client",
    "wire/kafka/pieces",
    "wire/kafka/walker",
    "wire/kafka/in_flight",
    "wire/kafka/to_broker",
    "wire/kafka/to_client",
    "wire/tubemq/scanning",
    "wire/tubemq/to_broker",
    "wire/tubemq/to_client",
)
"""The modules that an installation with a C compiler builds; those of `pyproject.toml`."""


class _SourceFirst(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """Return where a module's source is. Packages are left to other finders."""
        if not fullname.startswith("gateway."):
            return None
        for folder in path or ():
            file = Path(folder, fullname.rpartition(".")[2] + ".py")
            if file.exists():
                return spec_from_file_location(fullname, file)
        return None


def unbuilt(package: Path) -> str:
    """Return the first module of `BUILT` that is not there compiled; empty if all are."""
    for module in BUILT:
        if not any(Path(package, module + suffix).exists() for suffix in EXTENSION_SUFFIXES):
            return module
    return ""


def _why_pure() -> str:
    """Return why sources are imported; empty if compiled modules are."""
    if os.environ.get(PURE_BY, "0") not in ("", "0"):
        return f"{PURE_BY} is set"
    if sys.maxsize < 1 << 32:
        return "a machine of 32 bits, whose offsets a frame's size may exceed"
    missing = unbuilt(Path(__file__).parent)
    if missing:
        return f"not built: {missing}"
    try:
        import_module("gateway.wire.counters")  # fails if built for another system's libraries
    except ImportError as error:
        return f"not built: {error}"
    return ""


WHY_PURE = _why_pure()
COMPILED = not WHY_PURE
IMPLEMENTATION = "compiled" if COMPILED else "pure"
if WHY_PURE:
    sys.meta_path.insert(0, _SourceFirst())
