"""`python -m tests.fuzz`: all targets under atheris, then hostile peers around a gateway, then what
reaches brokers, judged by their own decoders, and Kafka's and TubeMQ's targets on as
many frames.

Exit status 1 where something was found. `--keep` takes what was found to be new into the corpus.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.oracle.oracle import MissingToolError
from tests.oracle.run import judge_pulsar
from tests.oracle.tubemq.run import judge_tubemq

from .fuzzer import MISSING, keep, run
from .kafka import storm
from .live.siege import run as besiege
from .report import Row, table
from .targets import KAFKA, TARGETS
from .tubemq import TUBEMQ

_say = partial(print, flush=True)


def main() -> int:
    """Answers the exit status."""
    options = _options()
    rows = _guided(options) if not MISSING else []
    if MISSING:
        _say(f"targets are not guided: {MISSING}")
    if options.frames:
        folder = Path(tempfile.mkdtemp(prefix="broker-gateway-fuzz-"))
        _say(f"== live: {options.frames:,} frames; the gateway's log: {folder / 'gateway.log'}")
        rows.append(besiege(folder, options.frames, options.seed, _say))
        rows += _judged(options)
        _say(f"== kafka: {options.frames:,} frames")
        rows.append(storm(KAFKA, options.frames, options.seed, _say))
        _say(f"== tubemq: {options.frames:,} frames")
        rows.append(storm(TUBEMQ, options.frames, options.seed, _say, name="tubemq"))
    _say(table(rows))
    return any(row.findings for row in rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each target (60)")
    parser.add_argument(
        "--frames",
        type=int,
        default=10_000_000,
        help="through a gateway, judged, of Kafka, and of TubeMQ (10^7)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of what hostile peers say (1)")
    parser.add_argument("--only", choices=TARGETS, action="append", help="these targets")
    parser.add_argument("--keep", action="store_true", help="what is new goes into the corpus")
    return parser.parse_args()


def _judged(options: argparse.Namespace) -> list[Row]:
    """None where this machine lacks Java, or what fetches the brokers' decoders."""
    _say(f"== oracle: {options.frames:,} frames")
    try:
        judges = (judge_pulsar, judge_tubemq)
        return [judge(options.frames, options.seed, _say) for judge in judges]
    except MissingToolError as missing:
        _say(f"nothing is judged: {missing}")
        return []


def _guided(options: argparse.Namespace) -> list[Row]:
    rows = list[Row]()
    for target in options.only or TARGETS:
        _say(f"== {target}: {options.seconds:g} s")
        seconds = max(1, round(options.seconds))
        rows.append(run(target, f"-max_total_time={seconds}", seconds=seconds))
        _say(table(rows[-1:]).splitlines()[1])
        if options.keep:
            _say(f"{keep(target)} inputs are kept of {target}")
    return rows


if __name__ == "__main__":
    sys.exit(main())
