"""Other processes of ours run by the interpreter that runs us."""

from __future__ import annotations

import os
import sys


def command(module: str, *arguments: str) -> list[str]:
    """What runs a module.

    Where we do not look for modules in the working folder, it does not either.
    """
    safe = [] if os.getcwd() in sys.path else ["-P"]  # noqa: PTH109 - as Python itself writes it
    return [sys.executable, *safe, "-m", module, *arguments]
