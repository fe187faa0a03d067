"""One target under atheris: `python -m tests.fuzz.guided TARGET TALLY [options] [folders]`.

The options and folders are libFuzzer's. TALLY is a file that holds how often the target was run,
and how many frames it made; libFuzzer ends the process without another word from here.
"""

from __future__ import annotations

import os
import shlex
import struct
import sys
from collections.abc import Callable
from pathlib import Path

GUIDING = ["gateway.wire", "gateway.brokers", "gateway.identity", "gateway.config"]
"""Whose branches count as coverage. Of the harness they would lead astray."""

TALLY = struct.Struct("<QQ")
"""Executions, frames."""


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer ends."""
    import atheris

    name, tally, *rest = arguments
    with atheris.instrument_imports(include=GUIDING):
        from tests.fuzz.targets import TARGETS
    again = _written(Path(tally).with_name("again"), name, tally)
    atheris.Setup([str(again), *rest], tallied(TARGETS[name], Path(tally)))
    atheris.Fuzz()


def _written(program: Path, *arguments: str) -> Path:
    """A program that runs this one: libFuzzer merges in a process that it starts by its name."""
    command = shlex.join([sys.executable, "-m", "tests.fuzz.guided", *arguments])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    return program


def tallied(target: Callable[[bytes], int], file: Path) -> Callable[[bytes], None]:
    """The target, counted."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    counts = [0, 0]

    def run(data: bytes) -> None:
        counts[0] += 1
        counts[1] += target(data)
        os.pwrite(descriptor, TALLY.pack(*counts), 0)

    return run


if __name__ == "__main__":
    main(sys.argv[1:])
