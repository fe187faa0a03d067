"""`python -m gateway.reload.reader PATH ...`: reads and checks files of rules for a gateway.

If the files are good, the process writes their rules to standard output, and its exit status is 0.
Otherwise it writes the mistakes that `gateway rules check` prints, and its exit status is 2.

The rules are written as pickles, because checking them again would take the gateway five times as
long. The gateway unpickles only what its own child process has written to a pipe.
"""

from __future__ import annotations

import os
import pickle
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.rules.files import load, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.policy.rules import Rule

NICENESS = 19
"""Gives the data path priority on a shared core."""

AT_ONCE = 25
"""Rules pickled together. What they share, above all field names, is written and kept once, which
halves the time; more would make the step of reading them longer than 0.2 ms."""


def main(paths: Sequence[str]) -> int:
    """Write the rules in these files to standard output, or the mistakes in them; return the exit
    status."""
    os.nice(NICENESS)
    try:
        rules = rules_of(load(map(Path, paths)))
    except ConfigurationError as error:
        # A file's name may have bytes that are not UTF-8.
        sys.stdout.buffer.write(str(error).encode(errors="backslashreplace"))
        return BAD_CONFIGURATION
    write(rules, sys.stdout.buffer)
    return 0


def write(rules: Sequence[Rule], to: BinaryIO) -> None:
    """Write the number of rules, and then the rules, pickled in groups."""
    pickle.dump(len(rules), to)
    for at in range(0, len(rules), AT_ONCE):
        pickle.dump(rules[at : at + AT_ONCE], to, pickle.HIGHEST_PROTOCOL)


def parse(written: bytes) -> Iterator[Rule]:
    """Yield the rules that `write` has written, each unpickled when it is needed. Raises `EOFError`
    if some are missing."""
    source = BytesIO(written)
    missing = pickle.load(source)  # noqa: S301 - from our own child
    while missing:
        rules = pickle.load(source)  # noqa: S301
        missing -= len(rules)
        yield from rules


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
