"""A long run with progress reports."""

from __future__ import annotations

import resource
from collections.abc import Callable

from tests.fuzz.report import Row

from .oracle import Oracles
from .run import Outcome, run

TOLD_EVERY = 60.0
"""Seconds between two reports."""

_KIB_IN_MIB = 1024
_LONGEST = 2000
"""Largest number of characters of a finding in the table."""


def judge_many(frames: int, seed: int, say: Callable[[str], None]) -> Row:
    """Play this many frames against all oracles. Raises as `Oracle` does."""
    told, shown = 0.0, 0

    def tell(outcome: Outcome) -> None:
        nonlocal told, shown
        for finding in outcome.findings[shown:]:
            say(str(finding)[:_LONGEST])
        shown = len(outcome.findings)
        if outcome.seconds - told >= TOLD_EVERY:
            told = outcome.seconds
            say(_progress(outcome))

    with Oracles(say) as oracles:
        first = _memory()
        outcome = run(oracles, frames, seed, tell)
        say(_progress(outcome))
    found = tuple(str(finding)[:_LONGEST] for finding in outcome.findings)
    memory = (first, _memory())
    return Row("oracle", outcome.connections, outcome.frames, outcome.seconds, None, found, memory)


def _memory() -> int:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KIB_IN_MIB


def _progress(outcome: Outcome) -> str:
    return (
        f"oracle: {outcome.connections:,} connections, {outcome.frames:,} frames, "
        f"{outcome.reached:,} of them reached a broker, {outcome.rate:,.0f}/s, "
        f"{len(outcome.findings)} findings"
    )
