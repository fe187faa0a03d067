"""`python -m tests.bench.instructions`: the instructions that the gateway executes per frame.

CPU time scatters by 20 % on shared machines; instructions of small frames, which Valgrind counts,
by half a percent. So a small difference between two gateways shows here, and what it costs in time
shows in the bench. Each gateway is run twice, for a short and for a long time: the difference is
that of the frames alone, without the start and the end.

`BESIDE=FOLDER` adds the gateway of another checkout. The exit status is also 0 if the machine lacks
something, which is then printed.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.figures import BESIDE, EVERYTHING, NOTHING
from tests.bench.load import BenchError, Generator, build
from tests.bench.machine import Cores, Interpreter, description
from tests.bench.proxies import CHECKOUT, HOST, Observed, Recipe, gateway, running
from tests.bench.rounds import say
from tests.bench.rows import ROWS, Kind, Row
from tests.real.brokers.jars import MissingToolError
from tests.real.brokers.ports import free_ports
from tests.soak import report

BUILD = CHECKOUT / "build" / "bench"

SECONDS = 5.0, 25.0
"""Of the two runs. Valgrind slows the gateway down twentyfold, so they have millions of frames."""

ROOM = 200
"""Connections that a gateway takes: more than any row has."""

PATIENCE = 120.0
"""Seconds of its start, which takes five without Valgrind's help."""

_COUNTED = re.compile(r"I +refs: +([\d,]+)")


@dataclass(frozen=True, slots=True)
class Run:
    """Instructions of one life of a gateway, and the frames that passed."""

    instructions: int
    frames: float


Make = Callable[[Path], Recipe]
"""Makes the recipe of one life, in an empty folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.instructions", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows with it")
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if row.kind is Kind.RATIO]
    chosen = [row for row in rows if not options.only or any(it in row.key for it in options.only)]
    try:
        with tempfile.TemporaryDirectory(prefix="broker-gateway-bench-") as folder:
            print(_measured(chosen, Path(folder)))
    except MissingToolError as missing:
        print(f"skipped: {missing}")
    except BenchError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


def _measured(rows: Sequence[Row], folder: Path) -> str:
    """Count all rows, and return the table."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise MissingToolError("Valgrind", "is not installed (Debian's package is valgrind)")
    (port,) = free_ports(HOST, 1)
    generator = Generator(build(BUILD), f"{HOST}:{port}")
    makers = dict(_makers(generator.listen))
    head = ["", *makers, *(f"{EVERYTHING}: more than {it}" for it in makers if it != EVERYTHING)]
    table = []
    for row in rows:
        found = {
            name: _per_frame(row, make, generator, valgrind, folder / f"{row.key} {name}")
            for name, make in makers.items()
        }
        own = found[EVERYTHING]
        more = [f"{own / it - 1:+.1%}" for name, it in found.items() if name != EVERYTHING]
        table.append([row.title, *(f"{it:,.0f}" for it in found.values()), *more])
        say("  ".join(table[-1]))
    return f"{description()}; instructions per frame\n\n{report.table(head, table)}"


def _makers(broker: str) -> Iterator[tuple[str, Make]]:
    """Yield what makes each gateway. That of another checkout only counts, with its metrics: it may
    lack the settings of the others."""
    interpreter = Interpreter.chosen()
    for name, observed in ((NOTHING, Observed.NOTHING), (EVERYTHING, Observed.EVERYTHING)):
        yield (
            name,
            lambda folder, name=name, observed=observed: gateway(  # type: ignore[misc]
                folder, broker, ROOM, interpreter, name=name, observed=observed
            ),
        )
    if "BESIDE" in os.environ:
        checkout = Path(os.environ["BESIDE"]).resolve()
        yield (
            BESIDE,
            lambda folder: gateway(
                folder, broker, ROOM, interpreter, checkout=checkout, name=BESIDE
            ),
        )


def _per_frame(row: Row, make: Make, generator: Generator, valgrind: str, folder: Path) -> float:
    say(f"{folder.name}: {sum(SECONDS):g} s")
    short, long = (
        _run(row, make, generator, valgrind, folder / f"{seconds:g}", seconds)
        for seconds in SECONDS
    )
    return (long.instructions - short.instructions) / (long.frames - short.frames)


def _run(
    row: Row, make: Make, generator: Generator, valgrind: str, folder: Path, seconds: float
) -> Run:
    folder.mkdir(parents=True)
    recipe, log = make(folder), folder / "valgrind.log"
    counting = (valgrind, "--tool=cachegrind", "--cache-sim=no", f"--log-file={log}")
    # The settings are read by a fork, which would count into the log first.
    options = ("--child-silent-after-fork=yes", "--cachegrind-out-file=/dev/null")
    command = (*counting, *options, *recipe.command)
    cores = Cores.of_this_process()
    with running(replace(recipe, command=command, patience=PATIENCE), cores) as proxy:
        sample = generator.run(
            [*row.load, "--hello", recipe.hello],
            target=proxy.target(row.door),
            pids=[proxy.pid],
            cores=(cores.load, cores.load),
            seconds=seconds,
        )
    counted = _COUNTED.search(log.read_text())
    if counted is None:
        raise BenchError(f"Valgrind counted nothing:\n{log.read_text()}")
    return Run(int(counted[1].replace(",", "")), sample["frames_with_warm_up"])


if __name__ == "__main__":
    sys.exit(main())
