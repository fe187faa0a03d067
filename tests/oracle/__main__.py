"""`python -m tests.oracle`: real brokers' decoders judge the frames that reach them; `--show`
prints the connection of one seed, of Pulsar or with `--only tubemq` of TubeMQ.

The exit status is 1 if they found anything.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from tests.fuzz.report import table

from .oracle import Oracles
from .play import Played
from .run import judge_pulsar, judged, play
from .tubemq import play as tubemq
from .tubemq.oracle import TubeOracle
from .tubemq.run import judge_tubemq
from .tubemq.run import judged as judged_tubemq
from .watched import House

_say = partial(print, flush=True)

_JUDGES = {"pulsar": judge_pulsar, "tubemq": judge_tubemq}


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="that peers say (10^6)")
    parser.add_argument("--seed", type=int, default=1, help="of the first connection (1)")
    parser.add_argument("--show", type=int, help="play the connection of this seed alone")
    parser.add_argument("--only", choices=_JUDGES, help="the decoders of this protocol")
    options = parser.parse_args()
    if options.show is not None:
        return (_show_tubemq if options.only == "tubemq" else _show)(options.show)
    judges = _JUDGES if options.only is None else {options.only: _JUDGES[options.only]}
    rows = [it(options.frames, options.seed, _say) for it in judges.values()]
    _say(table(rows))
    return 1 if any(row.findings for row in rows) else 0


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


def _show_tubemq(seed: int) -> int:
    """Print the connection of a seed to TubeMQ, frame by frame."""
    played = tubemq.play(seed)
    with TubeOracle(_say) as oracle:
        said, sent = oracle.read(*played.streams)
        findings = judged_tubemq(oracle, played)
    _say(f"the client says {played.said.hex()}, {played.piece} bytes at once")
    _say(f"a server would read {said}")
    for number, step in enumerate(played.steps):
        _say(f"{number} frame {step.frame.serial} {step.frame.envelope.hex()}")
        if step.judged is not None:
            _say(f"    judged: {str(step.judged.message)!r}")
        _say(f"    went on: {step.went_on.hex() if step.went_on is not None else 'nothing'}")
    _say(f"the server reads {sent}")
    _say(played.end or played.crash or "open")
    for finding in findings:
        _say(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
