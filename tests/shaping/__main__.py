"""`python -m tests.shaping`: measures limits with real clients, and prints tables.

Results are appended to a file of JSON lines, so that several runs add up and an interrupted run
loses nothing.
"""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.load import BenchError
from tests.bench.machine import description, descriptors
from tests.clients.loads import LOADS
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import FetchError, MissingToolError, pulsar_jars
from tests.real.brokers.standalone import Standalone, StartError
from tests.support.progress import say
from tests.support.results import append

from . import cost, crowd, dispatch, kafka, many, picture, replicas, table, transactions, tubemq
from .parts import PARTS, Act
from .play import Setting, play
from .results import Trial, read
from .scenarios import Scenario

BUILD = Path(__file__).resolve().parents[2] / "build" / "shaping"
ORDER = (
    "accuracy",
    "low",
    "neighbour",
    "fairness",
    "cost",
    "limits",
    "calm",
    "transactions",
    *("dispatch", "replicas", "kafka", "tubemq", "crowd"),
)
EXTRA = {"topicLevelPoliciesEnabled": "false"}
"""Without this, a topic of a new namespace waits for the topic of its policies."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not options.table:
            _run(options)
        _show(options)
    except MissingToolError as missing:
        print(f"skipped: {missing}")
    except (FetchError, StartError, BenchError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.shaping", description=__doc__)
    parser.add_argument("--only", action="append", choices=ORDER, help="these parts")
    parser.add_argument("--client", action="append", choices=LOADS, help="these clients")
    parser.add_argument("--name", default="", help="scenarios whose name holds this")
    parser.add_argument("--short", action="store_true", help="seconds of each, Python only")
    parser.add_argument("--results", type=Path, default=BUILD / "results.jsonl", metavar="FILE")
    parser.add_argument("--picture", type=Path, default=BUILD / "shaping.svg", metavar="FILE")
    parser.add_argument("--table", action="store_true", help="show what there is, run nothing")
    return parser.parse_args(arguments)


def _show(options: argparse.Namespace) -> None:
    trials = list(read(options.results))
    print(description())
    for part, show in table.TABLES.items():
        mine = [it for it in trials if it.part == part and not it.failure]
        if mine:
            print(f"\n{part}\n\n{show(mine)}")
    print(f"\n{table.failed(trials)}")
    if any(it.curve for it in trials):
        picture.draw(trials, options.picture)
        print(f"picture: {options.picture}")


def _run(options: argparse.Namespace) -> None:
    descriptors()
    artifacts = Artifacts()
    try:
        for part in ORDER:
            if part in (options.only or ORDER):
                (_play if part in PARTS else _measure)(part, options, artifacts)
    finally:
        say(f"logs: {artifacts.keep()}")
        artifacts.discard()


# -- with a broker -------------------------------------------------------------------------------


def _play(part: str, options: argparse.Namespace, artifacts: Artifacts) -> None:
    acts = PARTS[part](short=options.short)
    chosen = [tuple(it for it in act if _is_chosen(it, options)) for act in acts]
    if not any(chosen):
        return
    with _setting(artifacts, {it.client for act in chosen for it in act}) as setting:
        for act in filter(None, chosen):
            for trial in _perform(act, setting):
                append(trial, options.results)
                say(_summary(trial))


def _is_chosen(scenario: Scenario, options: argparse.Namespace) -> bool:
    is_asked = not options.client or scenario.client in options.client
    return is_asked and options.name in scenario.name


@contextmanager
def _setting(artifacts: Artifacts, clients: set[str]) -> Iterator[Setting]:
    programs = {name: LOADS[name](say) for name in clients}
    jars = pulsar_jars(say)
    broker = Standalone(jars, artifacts.directory("broker"), extra=EXTRA)
    broker.start()
    try:
        yield Setting(broker, broker.admin, programs, artifacts.directory("shaping"))
    finally:
        broker.stop()


def _perform(act: Act, setting: Setting) -> Iterator[Trial]:
    """Play all scenarios of an act at the same time."""
    with ThreadPoolExecutor(len(act)) as pool:
        yield from pool.map(lambda scenario: _tried(scenario, setting), act)


def _tried(scenario: Scenario, setting: Setting) -> Trial:
    """Play one scenario. A failure is recorded, and the next scenario goes on."""
    try:
        return play(scenario, setting)
    except Exception as error:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{error!r:.300} in {where.filename}:{where.lineno}"
        who = (scenario.part, scenario.name, scenario.client, scenario.way.value)
        limit = scenario.limit
        return Trial(*who, at, limit.rate, limit.unit.value, failure=why)


def _summary(trial: Trial) -> str:
    head = f"{trial.part}, {table.amount(trial.limit, trial.unit)}, {trial.name}, {trial.client}"
    if trial.failure:
        return f"{head}, {trial.way}: FAILED {trial.failure}"
    off = f"{100 * table.deviation(trial):+.2f} %"
    flows = "; ".join(
        f"{it.topic} {it.offered:,.0f} > {it.passed:,.1f}/s"
        f" p99 {1000 * it.waits.most:.0f} ms, {it.missing}/{it.doubled}/{it.disordered}"
        f" of {it.stored}, failed {dict(it.failed)}, Jain {it.fairness:.4f}"
        for it in trial.flows
    )
    load = os.getloadavg()[0]
    return f"{head}, {trial.way}: {off} [{flows}] {dict(trial.gateway)} load {load:.1f}"


# -- with loads of their own ---------------------------------------------------------------------

OTHERS = {
    "cost": cost.measure,
    "limits": many.measure,
    "transactions": transactions.measure,
    "dispatch": dispatch.measure,
    "replicas": replicas.measure,
    "kafka": kafka.measure,
    "tubemq": tubemq.measure,
    "crowd": crowd.measure,
}


def _measure(part: str, options: argparse.Namespace, artifacts: Artifacts) -> None:
    for trial in OTHERS[part](artifacts.directory(part), say, short=options.short):
        append(trial, options.results)
        say(f"{trial.part}, {trial.name}, {trial.client}: {dict(trial.facts)}")


if __name__ == "__main__":
    sys.exit(main())
