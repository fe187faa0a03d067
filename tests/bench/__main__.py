"""`python -m tests.bench`: measures, and prints the table on standard output.

`PEERS=java` adds Apache's proxy for Pulsar and Kroxylicious for Kafka, `PEERS=rights` the gateway
with rules of rights, `PEERS=observed` one that tells all that it can of its clients, and one that
tells nothing, `PEERS=pure` the gateway without its compiled loops, `PEERS=limits` a tuned HAProxy,
a splicing relay in C and one in trio that count nothing, and nginx; `BESIDE=FOLDER` adds the
gateway of another checkout, so that two versions are compared in one run;
`BENCH_PYTHON=/usr/bin/python3` runs the gateway with another interpreter. The exit status is also 0
if the machine lacks something, which is then printed.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gateway import PURE_BY
from tests.bench import limits, report, workers
from tests.bench.figures import (
    BESIDE,
    COMPARED,
    EVERYTHING,
    NOTHING,
    OURS,
    RELAY,
    TIMES,
    Line,
    added_line,
    cpu_line,
    latency_line,
    life_line,
    medians,
    times_line,
)
from tests.bench.load import BenchError, Generator, Sample, build
from tests.bench.machine import Cores, Interpreter, description, descriptors
from tests.bench.proxies import (
    CHECKOUT,
    HAPROXY_BUFFER,
    HOST,
    Observed,
    Proxy,
    Recipe,
    Shown,
    certificates,
    gateway,
    haproxy,
    haproxy_version,
    running,
)
from tests.bench.rounds import AT_ONCE, DISTURBED, PACE, Bench, Life, possible_connections, say
from tests.bench.rows import (
    EXTRA,
    KAFKA_LIFE,
    KAFKA_ROWS,
    LIFE,
    PACED_GOAL,
    ROWS,
    TLS_LIFE,
    TLS_ROWS,
    TUBEMQ_ROWS,
    Door,
    LifeFigure,
    Row,
)
from tests.real.brokers.jars import FetchError, MissingToolError
from tests.real.brokers.ports import free_ports

BUILD = CHECKOUT / "build" / "bench"

LIVES = {"life": (LIFE, Door.PLAIN), "kafka-life": (KAFKA_LIFE, Door.KAFKA)}
TLS_LIVES = {"life": (TLS_LIFE, Door.ECDSA)}
"""Figures and the door of a life, by its key for `--only`."""

BUSY = 0.95
"""Part of its core that a proxy takes which decides itself how fast a stream is."""

Samples = list[tuple[str, Sample]]
"""By name of the proxy."""

Compared = Callable[[str, list[tuple[str, float]], tuple[str, str], float | None], Line]
"""Makes a line of the figures of two proxies, as `added_line` does."""

Write = Callable[[Sequence[str], Sequence[str], Sequence[Line]], str]
"""Makes a table of what is said before it, the names of proxies and lines."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench, and return the exit status."""
    options = _options(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="broker-gateway-bench-") as folder:
            measure = _by_workers if options.workers else _measured
            print(measure(options, Path(folder)))
    except MissingToolError as missing:
        print(f"skipped: {missing}")
    except (BenchError, FetchError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="samples of each proxy and row (5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one sample (2)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="rows whose key holds this"
    )
    parser.add_argument(
        "--extra", action="store_true", help="rows without a place in the goals too"
    )
    parser.add_argument("--tls", action="store_true", help="the rows with TLS, and no others")
    parser.add_argument(
        "--paced", action="store_true", help="streams alone, at one rate for all proxies"
    )
    parser.add_argument(
        "--workers", action="store_true", help="by number of workers, and nothing else"
    )
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--list", action="store_true", help="name the rows, measure nothing")
    return parser.parse_args(arguments)


def _measured(options: argparse.Namespace, folder: Path) -> str:
    """Measure the chosen rows, and return the table."""
    plain = (*ROWS, *KAFKA_ROWS, *TUBEMQ_ROWS, *(EXTRA if options.extra else ()))
    known = TLS_ROWS if options.tls else plain
    rows = [row for row in known if _is_chosen(row.key, options)]
    if options.paced:
        rows = [replace(row, goal=PACED_GOAL) for row in rows if row.can_be_paced]
    lives = {
        key: it
        for key, it in (TLS_LIVES if options.tls else LIVES).items()
        if _is_chosen(key, options) and not options.paced
    }
    if options.list:
        return "\n".join([*(f"{row.key}: {row.title}" for row in rows), *lives])
    interpreter, connections = Interpreter.chosen(), possible_connections(descriptors())
    (port,) = free_ports(HOST, 1)
    generator = Generator(build(BUILD, tls=options.tls), f"{HOST}:{port}")
    cores = Cores.of_this_process()
    bench = Bench(
        generator, cores, options.rounds, options.seconds, connections, paced=options.paced
    )
    os.sched_setaffinity(0, {bench.cores.load})
    shown = certificates(folder) if options.tls else {}
    doors = {row.door for row in rows} | {door for _, door in lives.values()}
    recipes = _recipes(folder, generator.listen, connections, interpreter, shown, doors)
    samples = _loads(bench, recipes, rows) if rows else []
    lines = [_line(row, it) for row, it in samples]
    for figures, door in lives.values():
        lines += _lives(bench, recipes, max(1, min(9, options.rounds)), figures, door)
    write = report.markdown if options.markdown else report.text
    names = [recipe.name for recipe in recipes]
    said = [*_circumstances(bench, recipes, interpreter), *_idle(samples, paced=options.paced)]
    table = write(said, names, lines)
    return "\n\n".join([table, *_comparisons(samples, write)])


def _by_workers(options: argparse.Namespace, folder: Path) -> str:
    """Measure by number of workers, and return the table."""
    rows = [row for row in workers.rows() if _is_chosen(row.key, options)]
    if options.list:
        return "\n".join(f"{row.key}: {row.title}" for row in rows)
    descriptors()
    (port,) = free_ports(HOST, 1)
    generator = Generator(build(BUILD), f"{HOST}:{port}")
    bench = Bench(generator, workers.ANYWHERE, options.rounds, options.seconds, workers.ROOM)
    write = report.markdown if options.markdown else report.text
    return workers.measured(bench, rows, folder, Interpreter.chosen(), write)


def _idle(samples: Sequence[tuple[Row, Samples]], *, paced: bool) -> Iterator[str]:
    """Yield a line for each stream in which a proxy was not busy all the time: the load generator,
    or a receiver that was woken again and again, decided how fast it was. CPU per frame is higher
    then, since less is moved at a time."""
    if paced:
        yield f"streams at {PACE:.0%} of what the slowest proxy moves"
        return
    for row, of in samples:
        if row.load[0] == "stream":
            busy = medians((name, it["proxy_cpu_s"] / it["secs"]) for name, it in of)
            idle = [f"{name} {part:.0%}" for name, part in busy.items() if part < BUSY]
            if idle:
                yield f"not busy all the time in {row.title}: {', '.join(idle)} (see --paced)"


def _comparisons(samples: Sequence[tuple[Row, Samples]], write: Write) -> Iterator[str]:
    """Yield a table for each two proxies that are compared, with the rows that both were in."""
    for said, line, goals in (("more than", added_line, COMPARED), ("times", times_line, TIMES)):
        for (one, other), goal in goals.items():
            lines = [
                _compared(line, row, it, (one, other), goal)
                for row, it in samples
                if {one, other} <= {name for name, _ in it}
            ]
            if lines:
                head = f"{one}: {said} {other}, the median of all rounds (least to most)"
                yield write([head], [other, one], lines)
    shares = [
        times_line(row.title, _values(row, it), (RELAY, OURS), row.share)
        for row, it in samples
        if row.share is not None and {RELAY, OURS} <= {name for name, _ in it}
    ]
    if shares:
        head = f"part of what {RELAY}, reaches, the median of all rounds (least to most)"
        yield write([head], [RELAY, OURS], shares)


def _is_chosen(key: str, options: argparse.Namespace) -> bool:
    return not options.only or any(part in key for part in options.only)


def _recipes(
    folder: Path,
    broker: str,
    connections: int,
    interpreter: Interpreter,
    shown: Shown,
    doors: Set[Door],
) -> list[Recipe]:
    # Some more than are opened: recently closed ones may still count.
    room = connections + 500
    recipes = [
        haproxy(folder, broker, room, shown),
        gateway(folder, broker, room, interpreter, shown),
    ]
    peers = os.environ.get("PEERS", "").split(",")
    if "limits" not in peers and not shown:
        recipes.append(limits.relays(folder, BUILD, broker)[0])
    if "rights" in peers:
        name = "with rights"
        guarded = gateway(folder, broker, room, interpreter, shown, name=name, guarded=True)
        recipes.append(guarded)
    if "pure" in peers:
        pure = gateway(folder, broker, room, interpreter, shown, name="pure gateway")
        recipes.append(replace(pure, environment={**pure.environment, PURE_BY: "1"}))
    if "observed" in peers:
        for name, observed in ((NOTHING, Observed.NOTHING), (EVERYTHING, Observed.EVERYTHING)):
            one = gateway(folder, broker, room, interpreter, shown, name=name, observed=observed)
            recipes.append(one)
    if "limits" in peers:
        recipes += limits.recipes(folder, BUILD, broker, room, shown)
    if "java" in peers and Door.PLAIN in doors:
        from tests.bench import javaproxy

        recipes += javaproxy.recipes(folder, broker)
    if "java" in peers and Door.KAFKA in doors:
        from tests.bench import kroxylicious

        recipes.append(kroxylicious.recipe(folder, broker))
    if "BESIDE" in os.environ:
        checkout = Path(os.environ["BESIDE"]).resolve()
        beside = gateway(folder, broker, room, interpreter, shown, checkout, BESIDE)
        recipes.append(beside)
    return recipes


def _loads(
    bench: Bench, recipes: Sequence[Recipe], rows: Sequence[Row]
) -> list[tuple[Row, Samples]]:
    with ExitStack() as stack:
        proxies: list[Proxy] = []
        for recipe in recipes:
            say(f"starting {recipe.name}")
            proxies.append(stack.enter_context(running(recipe, bench.cores)))
        bench.settle(proxies, rows)
        found = []
        for row in rows:
            samples = bench.load(row, proxies)
            _keep(row.key, samples)
            found.append((row, samples))
            line = _line(row, samples)
            say(f"  {line.measured} ({line.verdict})")
        return found


def _line(row: Row, samples: Samples) -> Line:
    line = latency_line if row.is_latency else cpu_line
    return line(row, medians(_values(row, samples)))


def _compared(
    line: Compared, row: Row, samples: Samples, compared: tuple[str, str], goal: float | None
) -> Line:
    """Return the line of one comparison. The goal is one of CPU."""
    title, goal = row.title, None if row.is_latency else goal
    if row.is_latency:
        title = title.replace("added p50", "median round trip")
    return line(title, _values(row, samples), compared, goal)


def _values(row: Row, samples: Samples) -> list[tuple[str, float]]:
    """Return what is measured of a row, by name of the proxy."""
    figure = "p50_us" if row.is_latency else "proxy_us_per_frame"
    return [(proxy, it[figure]) for proxy, it in samples]


def _lives(
    bench: Bench,
    recipes: Sequence[Recipe],
    rounds: int,
    figures: Sequence[LifeFigure],
    door: Door,
) -> list[Line]:
    lives = bench.lives(recipes, rounds, door)
    return [
        life_line(figure, medians((proxy, _value(life, figure.key)) for proxy, life in lives))
        for figure in figures
    ]


def _value(life: Life, key: str) -> float:
    return float(getattr(life, key))


def _keep(key: str, samples: Iterable[tuple[str, Sample]]) -> None:
    """Write every sample of the latest run of a row to a file for later inspection."""
    kept = [{"proxy": proxy, "foreign": it.foreign, **it.numbers} for proxy, it in samples]
    (BUILD / f"{key}.json").write_text(json.dumps(kept, indent=1) + "\n")


def _circumstances(bench: Bench, recipes: Sequence[Recipe], interpreter: Interpreter) -> list[str]:
    cores = "a core each" if bench.cores.apart else "one core for both"
    return [
        f"machine: {description()}; proxy and load generator: {cores}",
        f"gateway: {interpreter.version} ({interpreter.build}), reads of up to 512 KiB",
        f"HAProxy: {haproxy_version(recipes[0])}, one thread, buffers of {HAPROXY_BUFFER} bytes",
        f"medians of {bench.rounds} rounds of {bench.seconds:g} s; CPU of the proxy per frame",
        f"{bench.connections} connections, opened {AT_ONCE} at a time, for pairs and set-up",
        f"foreign load: at most {bench.worst:.2f} cores ({DISTURBED} is let pass)",
    ]


if __name__ == "__main__":
    sys.exit(main())
