"""A long run with progress reports."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tests.fuzz.report import Row

TOLD_EVERY = 60.0
"""Seconds between two reports."""

_KIB_IN_MIB = 1024
_LONGEST = 2000
"""Largest number of characters of a finding in the table."""


class Outcome(Protocol):
    """What a run has found so far. Its text is a report."""

    connections: int
    frames: int
    seconds: float

    @property
    def findings(self) -> Sequence[object]: ...


Found = TypeVar("Found", bound=Outcome)


def reported(
    name: str, run: Callable[[Callable[[Found], None]], Found], say: Callable[[str], None]
) -> Row:
    """Run, with reports, and return the row of the table. `run` calls its argument after each
    batch."""
    told, shown, first = 0.0, 0, _memory()

    def tell(outcome: Found) -> None:
        nonlocal told, shown
        for finding in outcome.findings[shown:]:
            say(str(finding)[:_LONGEST])
        shown = len(outcome.findings)
        if outcome.seconds - told >= TOLD_EVERY:
            told = outcome.seconds
            say(str(outcome))

    outcome = run(tell)
    say(str(outcome))
    found = tuple(str(finding)[:_LONGEST] for finding in outcome.findings)
    memory = (first, _memory())
    return Row(name, outcome.connections, outcome.frames, outcome.seconds, None, found, memory)


def _memory() -> int:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB_IN_MIB
