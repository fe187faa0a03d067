"""`python -m tests.faults`: causes faults in a real cluster and in gateways, and prints how direct
clients and clients of the gateway fared.

Results are appended to a file of JSON lines, so that rounds of several runs add up.
"""

import argparse
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from tests.real.artifacts import Artifacts
from tests.real.brokers.cluster import Cluster, LoadManager
from tests.real.brokers.jars import FetchError, MissingToolError, pulsar_jars
from tests.real.brokers.standalone import StartError
from tests.support.progress import say
from tests.support.results import append

from . import table
from .clients import programs
from .faults import EXTRA, FAULTS
from .results import Trial, read
from .trial import Setting, hold

BUILD = Path(__file__).resolve().parents[2] / "build" / "faults"
TRIAL_SECONDS = 240
"""A trial that takes longer hangs."""
SHORT_MINUTE = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not options.table:
            _run(options)
        _show(options.results)
    except MissingToolError as missing:
        print(f"skipped: {missing}")
    except FetchError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = [*FAULTS, *EXTRA]
    managers = [manager.name.lower() for manager in LoadManager]
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each fault (5)")
    parser.add_argument("--only", action="append", choices=known, help="these faults")
    parser.add_argument("--brokers", action="append", choices=managers, help="of this kind")
    parser.add_argument("--short", action="store_true", help="the minute of unloads is 10 s")
    parser.add_argument("--trace", action="store_true", help="gateways log each frame")
    parser.add_argument("--results", type=Path, default=BUILD / "results.jsonl", metavar="FILE")
    parser.add_argument("--table", action="store_true", help="show what there is, run nothing")
    return parser.parse_args(arguments)


def _show(results: Path) -> None:
    trials = list(read(results))
    for show in (table.clients, table.rounds, table.gateways):
        print(f"\n{show(trials)}")


def _run(options: argparse.Namespace) -> None:
    """Run all rounds. A cluster lives for one round, so that no round inherits from another."""
    artifacts = Artifacts()
    try:
        for number in range(options.rounds):
            for name in options.brokers or [manager.name.lower() for manager in LoadManager]:
                say(f"round {number + 1} of {options.rounds}, {name}")
                try:
                    _round(options, LoadManager[name.upper()], artifacts)
                except StartError as error:
                    say(f"the rest of this round is left out: {error}")
    finally:
        say(f"logs: {artifacts.keep()}")
        artifacts.discard()


def _round(options: argparse.Namespace, manager: LoadManager, artifacts: Artifacts) -> None:
    jars, clients = pulsar_jars(say), programs(say)
    folder = artifacts.directory(f"faults-{manager.name.lower()}")
    cluster = Cluster(jars, folder / "cluster", manager)
    minute = SHORT_MINUTE if options.short else 60
    setting = Setting(cluster, manager, clients, folder, minute=minute, traced=options.trace)
    cluster.start()
    try:
        for name in options.only or FAULTS:
            append(_trial(setting, name), options.results)
    finally:
        cluster.stop()


def _trial(setting: Setting, name: str) -> Trial:
    """Run one trial. A failure is recorded, and the next trial begins with all brokers up."""
    began = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        with _bounded(TRIAL_SECONDS):
            trial = hold(setting, name, (FAULTS | EXTRA)[name])
    except Exception as error:
        trial = Trial(name, setting.load_manager.name.lower(), began, failure=_told(error))
    say(_summary(trial))
    for broker in setting.cluster.brokers:
        broker.start()
    return trial


def _told(error: Exception) -> str:
    """Return the error and its origin."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {where.filename}:{where.lineno}: {where.line}"


def _summary(trial: Trial) -> str:
    them = ", ".join(
        f"{it.client} {it.way} {it.missing}/{it.doubled}/{it.disordered} {it.longest:.2f} s"
        + (" BROKEN" if it.broken else "")
        for it in trial.outcomes
    )
    return f"{trial.fault}: {trial.failure or them} {dict(trial.facts)} {dict(trial.gateway)}"


@contextmanager
def _bounded(seconds: int) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not over within {seconds} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    sys.exit(main())
