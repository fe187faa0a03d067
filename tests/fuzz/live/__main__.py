"""`python -m tests.fuzz.live`: hostile peers on both sides of a gateway until FRAMES came through.

Exit status 1 where something is wrong. The log of that gateway is kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.fuzz.report import table

from .siege import run


def main() -> int:
    """Answers the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.live", description=__doc__)
    parser.add_argument("--frames", type=int, default=200_000, help="that come through (200000)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is said (1)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="broker-gateway-fuzz-"))
    row = run(folder, options.frames, options.seed, partial(print, flush=True))
    print(table([row]))
    if row.findings:
        print(f"the gateway's log: {folder / 'gateway.log'}")
    return bool(row.findings)


if __name__ == "__main__":
    sys.exit(main())
