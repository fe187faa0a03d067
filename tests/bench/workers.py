"""`python -m tests.bench --workers`: what more processes of the gateway give, beside as many
threads of HAProxy, and what a limit costs that all of them share.

Nothing is pinned, since proxies are to use all cores. So the load generator takes part of what
they could have: CPU per frame says what a frame costs, frames per second what the whole machine
moves, with the load generator.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.figures import OURS, PEER, Line, Verdict, medians, readable
from tests.bench.load import BenchError, Sample
from tests.bench.machine import ANY, Cores, Interpreter, description
from tests.bench.proxies import Proxy, Recipe, Tuning, gateway, haproxy, haproxy_version, running
from tests.bench.rounds import Bench, say
from tests.bench.rows import EXTRA, ROWS, Row

ANYWHERE = Cores(load=ANY, proxy=ANY)

MOST = 4
"""Workers: the two threads of the load generator keep no more of them busy."""

ROOM = 200
"""Connections that each worker takes: more than any row has."""

LOOK = 0.01
"""Seconds between two looks if all workers listen."""

LIMITED = "limited gateway"

KEYS = "send-1k-conns", "wake-up"
"""Rows whose connections can be spread over workers."""

# Several times what these machines move, so that nothing is held; not a thousand times, with which
# a worker would reserve once for the whole run, and never ask its parent again.
_RULES = """\
version: 1
rules:
  - id: far-above
    limit: {publish: {messages: 20000000/s, bytes: 20GB/s}}
    per: tenant
"""

Samples = Sequence[tuple[str, Sample]]
"""By name of the proxy."""

Write = Callable[[Sequence[str], Sequence[str], Sequence[Line]], str]
"""Makes a table of what is said before it, the names of proxies and lines."""


def rows() -> list[Row]:
    """Return the measured rows."""
    return [row for row in (*EXTRA, *ROWS) if row.key in KEYS]


def counts(cores: int) -> range:
    """Return the numbers of workers on a machine with so many cores."""
    return range(1, min(cores, MOST) + 1)


def measured(
    bench: Bench, chosen: Sequence[Row], folder: Path, interpreter: Interpreter, write: Write
) -> str:
    """Measure the chosen rows with each number of workers, and return the table. The cores of the
    bench are ANYWHERE. Raises MissingToolError, BenchError."""
    lines: dict[str, list[Line]] = {row.key: [] for row in chosen}
    cores = len(os.sched_getaffinity(0))
    for count in counts(cores):
        place = folder / f"{count} workers"
        place.mkdir()
        peers = recipes(place, bench.generator.listen, count, interpreter)
        for row, samples in _loads(bench, peers, chosen, count):
            lines[row.key] += table_lines(row, count, samples)
    said = [
        f"machine: {description()}; {cores} for proxy and load generator together, nothing pinned",
        "the load generator takes its part: frames per second are those that it leaves room for",
        f"gateway: {interpreter.version} ({interpreter.build}); CPU of its parent and workers",
        f"HAProxy: {haproxy_version(peers[0])}, as many threads as the gateway has workers",
        f"medians of {bench.rounds} rounds of {bench.seconds:g} s; CPU of the proxy per frame",
        "measured: HAProxy's CPU divided by the gateway's; under a limit: CPU more than without",
        f"foreign load: at most {bench.worst:.2f} cores",
    ]
    return write(said, (PEER, OURS), [line for of_row in lines.values() for line in of_row])


def recipes(folder: Path, broker: str, count: int, interpreter: Interpreter) -> list[Recipe]:
    """Return HAProxy with so many threads, the gateway with so many workers, and the same under a
    limit. Raises MissingToolError."""
    alone = gateway(folder, broker, ROOM, interpreter, name=OURS)
    limited = gateway(folder, broker, ROOM, interpreter, name=LIMITED)
    _set(alone, count)
    _set(limited, count, _RULES)
    # HAProxy's bound is one of all threads.
    return [haproxy(folder, broker, count * ROOM, tuning=Tuning(count)), alone, limited]


def _set(recipe: Recipe, count: int, rules: str = "") -> None:
    """Give a gateway workers and rules. One worker is the default, and has no parent."""
    file = Path(recipe.command[-1])
    with file.open("a") as settings:
        if count > 1:
            settings.write(f"workers: {count}\n")
        if rules:
            (file.parent / "rules.yaml").write_text(rules)
            settings.write("rules: rules.yaml\n")


def _loads(
    bench: Bench, peers: Sequence[Recipe], chosen: Sequence[Row], count: int
) -> Iterator[tuple[Row, Samples]]:
    with ExitStack() as stack:
        proxies = []
        for recipe in peers:
            say(f"starting {recipe.name} with {count}")
            proxies.append(stack.enter_context(running(recipe, bench.cores)))
        for proxy in proxies:
            if proxy.recipe.name != PEER:
                _await_workers(proxy, count)
        bench.settle(proxies, chosen)
        for row in chosen:
            yield row, bench.load(row, proxies)


def _await_workers(proxy: Proxy, count: int) -> None:
    """Wait until all workers listen. The parent has bound the address before that."""
    deadline = time.monotonic() + proxy.recipe.patience
    while listening(proxy.recipe.log.read_text()) < count:
        if time.monotonic() > deadline:
            raise BenchError(f"{proxy.recipe.name}: not all of {count} workers listen")
        time.sleep(LOOK)


def listening(log: str) -> int:
    """Return how many processes have said that they listen."""
    wanted = '"listener": "bench"', '"event": "listening"'
    return sum(all(part in line for part in wanted) for line in log.splitlines())


def table_lines(row: Row, count: int, samples: Samples) -> list[Line]:
    """Return the line of a number of workers, and the one of a limit that they share."""
    cpu = medians((name, it["proxy_us_per_frame"]) for name, it in samples)
    speed = medians((name, it["frames"] / it["secs"]) for name, it in samples)
    cells = {name: f"{readable(cpu[name])} us, {speed[name]:,.0f}/s" for name in cpu}
    workers = f"{count} worker{'s' * (count > 1)}"
    under = f"{row.title}, {workers}, under a limit"
    ratio, more = f"{cpu[PEER] / cpu[OURS]:.2f}", f"{cpu[LIMITED] / cpu[OURS] - 1:+.1%}"
    return [
        _line(f"{row.title}, {workers}", {name: cells[name] for name in (PEER, OURS)}, ratio),
        _line(under, {OURS: cells[LIMITED]}, more),
    ]


def _line(title: str, cells: dict[str, str], figure: str) -> Line:
    return Line(title, cells, figure, "-", Verdict.NONE)
