"""`python -m tests.oracle`: real brokers' decoders judge the frames that reach them; `--show`
prints the connection of one seed.

The exit status is 1 if they found anything.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from tests.fuzz.report import table

from .long import judge_many
from .oracle import Oracles
from .play import Played
from .run import judged, play
from .watched import House

_say = partial(print, flush=True)


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="that peers say (10^6)")
    parser.add_argument("--seed", type=int, default=1, help="of the first connection (1)")
    parser.add_argument("--show", type=int, help="play the connection of this seed alone")
    options = parser.parse_args()
    if options.show is not None:
        return _show(options.show)
    row = judge_many(options.frames, options.seed, _say)
    _say(table([row]))
    return 1 if row.findings else 0


def _show(seed: int) -> int:
    """Print the connection of a seed, step by step."""
    item = play(House(), seed)
    with Oracles(_say) as oracles:
        if isinstance(item, Played):
            _tell(item, oracles)
        findings = judged(oracles, item)
    for finding in findings:
        _say(finding)
    return 1 if findings else 0


def _tell(played: Played, oracles: Oracles) -> None:
    listener = played.listener
    _say(f"{listener.mode}, limited {listener.limited}, unknown_pass {listener.unknown_pass}")
    for number, step in enumerate(played.steps):
        _say(f"{number} {step.said[0].name} {step.said[1].hex()}")
        for thought in step.thoughts:
            _say(f"    taken for {thought.kind}: {str(thought.body)!r}")
        for admission in step.admissions:
            _say(f"    admitted: {admission.asked.action} {admission.asked.name}")
        for frame, readings in zip(step.frames, oracles.frames(step.frames), strict=True):
            _say(f"    went on: {frame.hex()}")
            for oracle, reading in zip(oracles.all, readings, strict=True):
                _say(f"        {oracle.version}: {reading}")
        _say(f"    {[tuple(count) for count in step.counts]}")
    _say("; ".join(played.ends))


if __name__ == "__main__":
    sys.exit(main())
