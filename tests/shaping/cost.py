"""CPU of the gateway per frame, under limits that nobody is above, against none."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.bench.figures import medians
from tests.bench.load import Generator, build
from tests.bench.machine import Cores, Interpreter
from tests.bench.proxies import HOST, Proxy, Recipe, gateway, running
from tests.bench.rounds import Bench
from tests.bench.rows import Row
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_ports

from .results import Trial

BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"
COUNTS = (0, 1, 10, 1000)
"""Rules that match."""
RATE = 10_000_000
"""Messages a second: some times what passes, so leases end several times a second."""
ROWS = (
    Row("send-1k", "SEND 1 KB", ("stream", "--cmd", "send", "--mix", "1000,1050,1100")),
    Row("send-100", "SEND 100 B", ("stream", "--cmd", "send", "--mix", "100,107,115")),
    Row("wake-up", "one 1 KB frame per wake-up, 32 connections", ("pingpong", "--conns", "32")),
)


def measure(folder: Path, _say: Say, *, short: bool) -> Iterator[Trial]:
    """A trial for each kind of load, with the cost under each number of rules."""
    (port,) = free_ports(HOST, 1)
    generator = Generator(build(BUILD), f"{HOST}:{port}")
    rounds, seconds, patience = (1, 0.3, 0.0) if short else (5, 1.0, 60.0)
    cores = Cores.of_this_process()
    bench = Bench(generator, cores, rounds, seconds, connections=0, patience=patience)
    recipes = [_ruled(folder / str(count), generator.listen, count) for count in COUNTS]
    with ExitStack() as stack:
        proxies = [stack.enter_context(running(recipe, bench.cores)) for recipe in recipes]
        bench.settle(proxies)
        for row in ROWS:
            yield _trial(bench, row, proxies)


def _trial(bench: Bench, row: Row, proxies: list[Proxy]) -> Trial:
    samples = bench.load(row, proxies)
    costs = medians((proxy, sample["proxy_us_per_frame"]) for proxy, sample in samples)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Trial("cost", row.title, "loadgen", "gateway", at, facts=dict(costs))


def _ruled(folder: Path, broker: str, count: int) -> Recipe:
    folder.mkdir()
    recipe = gateway(folder, broker, 500, Interpreter.chosen())
    if count:
        rules = [_rule(number) for number in range(count)]
        (folder / "rules.yaml").write_text(yaml.safe_dump({"version": 1, "rules": rules}))
        with (folder / "gateway.yaml").open("a") as settings:
            settings.write("rules: rules.yaml\n")
    return replace(recipe, name=str(count))


def _rule(number: int) -> dict[str, Any]:
    limit = {"publish": {"messages": f"{RATE + number}/s"}}
    return {"id": f"rule-{number}", "match": {"topic": "*"}, "limit": limit, "per": "topic"}
