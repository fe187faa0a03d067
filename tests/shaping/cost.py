"""CPU time of the gateway per frame, with limits far above the traffic and without limits."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.bench.figures import medians
from tests.bench.load import Generator, build
from tests.bench.machine import Cores, Interpreter
from tests.bench.proxies import HOST, Recipe, gateway, running
from tests.bench.rounds import Bench
from tests.bench.rows import Row
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_ports

from .results import Trial

BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"
COUNTS = (0, 1, 10, 1000)
"""Numbers of matching rules."""
FAR = 10_000_000


@dataclass(frozen=True)
class Load:
    """One load. `rate`: each rule's messages a second. The closer it is to the load, the more often
    leases end."""

    title: str
    words: str
    rate: int = FAR


SMALL, KILOBYTE = ("stream --cmd send --mix 100,107,115", "stream --cmd send --mix 1000,1050,1100")
ROUND = "pingpong --conns 32"
LOADS = (
    Load("SEND 1 KB, limits of 10,000,000/s", KILOBYTE),
    Load("SEND 1 KB, 4,000,000/s", KILOBYTE, 4_000_000),
    Load("SEND 100 B, 10,000,000/s", SMALL),
    Load("one 1 KB frame per wake-up, 32 connections, 10,000,000/s", ROUND),
    Load("the same, 200,000/s", ROUND, 200_000),
)
"""The second and third pass about half of their limit, the last a third."""


def measure(folder: Path, _say: Say, *, short: bool) -> Iterator[Trial]:
    """Yield a trial for each kind of load, with the cost for each number of rules."""
    (port,) = free_ports(HOST, 1)
    generator = Generator(build(BUILD), f"{HOST}:{port}")
    rounds, seconds, patience = (1, 0.3, 0.0) if short else (3, 1.0, 60.0)
    cores = Cores.of_this_process()
    bench = Bench(generator, cores, rounds, seconds, connections=0, patience=patience)
    for number, load in enumerate(LOADS):
        here = folder / str(number)
        here.mkdir()
        yield _trial(bench, load, here)


def _trial(bench: Bench, load: Load, folder: Path) -> Trial:
    recipes = [_ruled(folder / str(count), bench, count, load.rate) for count in COUNTS]
    row = Row("", load.title, tuple(load.words.split()))
    with ExitStack() as stack:
        proxies = [stack.enter_context(running(recipe, bench.cores)) for recipe in recipes]
        samples = bench.load(row, proxies)
    costs = medians((proxy, sample["proxy_us_per_frame"]) for proxy, sample in samples)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Trial("cost", row.title, "loadgen", "gateway", at, facts=dict(costs))


def _ruled(folder: Path, bench: Bench, count: int, rate: int) -> Recipe:
    """Return a recipe; all proxies share a core, and one works at a time."""
    folder.mkdir()
    recipe = gateway(folder, bench.generator.listen, 500, Interpreter.chosen())
    if count:
        rules = [_rule(number, rate) for number in range(count)]
        (folder / "rules.yaml").write_text(yaml.safe_dump({"version": 1, "rules": rules}))
        with (folder / "gateway.yaml").open("a") as settings:
            settings.write("rules: rules.yaml\n")
    return replace(recipe, name=str(count))


def _rule(number: int, rate: int) -> dict[str, Any]:
    limit = {"publish": {"messages": f"{rate + number}/s"}}
    return {"id": f"rule-{number}", "match": {"topic": "*"}, "limit": limit, "per": "topic"}
