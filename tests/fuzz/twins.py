"""`python -m tests.fuzz.twins FRAMES`: pure and compiled scanners of Kafka on the same bytes; with
`--tubemq` of TubeMQ, see `kafka_twins` and `tubemq_twins`.

Both get the same frames, cut at the same places, under the same allowances, and must count, halt,
clear and refuse alike.
"""

from __future__ import annotations

import argparse
import sys

from gateway.compiled import COMPILED, WHY_PURE
from tests.fuzz import kafka_twins, tubemq_twins


def main() -> int:
    """Answer the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.twins", description=__doc__)
    parser.add_argument("frames", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tubemq", action="store_true", help="sessions of TubeMQ")
    options = parser.parse_args()
    if not COMPILED:
        print(f"there are no twins: the scanners are pure ({WHY_PURE})")
        return 0
    done = 0
    compare = tubemq_twins.run if options.tubemq else kafka_twins.run
    while done < options.frames:
        done += compare(min(1_000_000, options.frames - done), options.seed + done)
        print(f"{done:,} frames, no difference", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
