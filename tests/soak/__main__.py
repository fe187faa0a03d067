"""`python -m tests.soak [idle] [stalled] [churn] [gc] [reload] [costs] [handshakes] [scrapes]
[topics] [requests] [hostile]`: all parts, or the named ones.

The tables go to standard output. The exit status is 1 if a claim does not hold, with a message
saying which one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.bench.machine import description, descriptors
from tests.soak import (
    churn,
    costs,
    growth,
    handshakes,
    hostile,
    idle,
    pauses,
    reload,
    requests,
    scrapes,
    stalled,
    topics,
)
from tests.soak.runner import BrokenClaimError
from tests.soak.stalled import Stall

STALLS = (
    Stall(to_client=True),
    Stall(to_client=True, read_again=False),
    Stall(to_client=False, blocks=16),
    Stall(to_client=False, blocks=16, read_again=False),
    Stall(to_client=True, pairs=100, blocks=64, socket_buffer=None),
    Stall(to_client=False, pairs=100, blocks=64, socket_buffer=None),
)
"""The kernel tunes the buffers of the last two, which would take gigabytes with more pairs."""


PARTS = (
    *("idle", "stalled", "churn", "gc", "reload", "costs", "handshakes"),
    *("scrapes", "topics", "requests", "hostile"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen parts, and return the exit status."""
    options = _options(arguments)
    parts: dict[str, Callable[[Path], str]] = {
        "idle": lambda folder: idle.table(idle.run(options.pairs, folder)),
        "stalled": partial(_stalled, options.stalled),
        "churn": lambda folder: churn.table(churn.run(options.connects, folder)),
        "gc": lambda folder: pauses.table(pauses.run(options.open, folder)),
        "reload": lambda folder: reload.table(reload.run(folder, options.rules)),
        "costs": lambda _folder: f"{costs.table(costs.run())}\n\n{growth.table(growth.run())}",
    }
    parts["handshakes"] = lambda folder: handshakes.table(handshakes.run(folder))
    parts["scrapes"] = lambda folder: scrapes.table(scrapes.run(folder, options.scraped))
    parts["requests"] = lambda folder: requests.table(requests.run(folder))
    parts["hostile"] = lambda folder: hostile.table(hostile.run(folder))
    parts["topics"] = lambda folder: topics.table(topics.run(folder, options.wave))
    print(f"{description()}; {descriptors()} descriptors\n", flush=True)
    return max([_run(name, parts[name]) for name in options.parts or parts])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--pairs", type=int, default=5_000, help="idle ones (5,000)")
    parser.add_argument("--stalled", type=int, default=1_000, help="pairs that stall (1,000)")
    parser.add_argument("--connects", type=int, default=1_000_000, help="of the churn (1,000,000)")
    parser.add_argument("--open", type=int, default=pauses.PAIRS, help="pairs for gc (10,000)")
    parser.add_argument("--rules", type=int, default=reload.RULES, help="to reload (2,000)")
    parser.add_argument("--scraped", type=int, default=scrapes.TOPICS, help="topics (10,000)")
    parser.add_argument("--wave", type=int, default=topics.TOPICS, help="of new topics (20,000)")
    return parser.parse_args(arguments)


def _run(name: str, part: Callable[[Path], str]) -> int:
    with tempfile.TemporaryDirectory(prefix="broker-gateway-soak-") as folder:
        try:
            print(part(Path(folder)) + "\n", flush=True)
        except BrokenClaimError as broken:
            print(f"{name}: {broken}", file=sys.stderr)
            return 1
    return 0


def _stalled(pairs: int, folder: Path) -> str:
    outcomes = []
    for number, stall in enumerate(STALLS):
        here = folder / str(number)
        here.mkdir()
        outcomes.append(stalled.run(stall.with_at_most(pairs), here))
    return stalled.table(outcomes)


if __name__ == "__main__":
    sys.exit(main())
