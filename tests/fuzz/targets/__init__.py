"""What is fuzzed: functions of bytes that answer how many frames they made of them.

Each fails (an assertion, or an exception that nobody allowed) where a property does not hold.
"""

from __future__ import annotations

from collections.abc import Callable

from .opening import opening
from .parsers import parsers
from .scanner import scanner, walked
from .session import session

Target = Callable[[bytes], int]

TARGETS: dict[str, Target] = {
    "scanner": scanner,
    "metadata": walked,
    "opening": opening,
    "session": session,
    "parsers": parsers,
}

LONGEST_INPUT = 1024
"""Bytes of one input: about a hundred frames."""
