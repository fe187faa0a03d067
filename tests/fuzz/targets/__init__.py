"""What is fuzzed: functions of bytes that answer how many frames they made of them.

Each fails (an assertion, or an exception that nobody allowed) where a property does not hold.
"""

from __future__ import annotations

from collections.abc import Callable

from .kafka import kafka_opening, kafka_session
from .opening import opening
from .parsers import parsers
from .scanner import scanner, walked
from .session import session

Target = Callable[[bytes], int]

KAFKA: dict[str, Target] = {"kafka_session": kafka_session, "kafka_opening": kafka_opening}

TARGETS: dict[str, Target] = {
    "scanner": scanner,
    "metadata": walked,
    "opening": opening,
    "session": session,
    "parsers": parsers,
    **KAFKA,
}

LONGEST_INPUT = 1024
"""Bytes of one input: about a hundred frames."""
