"""`python -m gateway.reload.reader PATH ...`: reads and checks files of rules for a gateway.

Standard output takes the rules, and the status is 0; or the mistakes that `gateway rules check`
tells, and the status is 2.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.reload import passing
from gateway.rules.files import load, rules_of

if TYPE_CHECKING:
    from collections.abc import Sequence

MISTAKEN = 2

NICENESS = 19
"""The data path comes first where they share a core."""


def main(paths: Sequence[str]) -> int:
    """Read; answers the exit status."""
    os.nice(NICENESS)
    try:
        rules = rules_of(load(map(Path, paths)))
    except ConfigurationError as error:
        # A name may have bytes that are no text.
        sys.stdout.buffer.write(str(error).encode(errors="backslashreplace"))
        return MISTAKEN
    passing.write(rules, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
