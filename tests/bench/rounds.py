"""Takes the samples.

Rounds are interleaved over all proxies, with the order reversed every other round. A sample that
other processes disturb is taken again. Only the disturbance decides which of its tries is kept,
never the measured value.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TypeVar

from tests.bench.figures import DIRECT
from tests.bench.load import BenchError, Generator, Sample
from tests.bench.machine import Cores, wait_for_calm
from tests.bench.proxies import Proxy, Recipe, running
from tests.bench.rows import IDLE_CONNECTIONS, Door, Kind, Row

T = TypeVar("T")

DISTURBED = 0.12
"""Cores. Above this, foreign load distorts a sample."""

TRIES = 4

PATIENCE = 240.0
"""Seconds that a whole bench may spend on waiting for a calm machine, and on repeated samples."""


PACE = 0.5
"""Part of what the slowest proxy moves as fast as it can: a proxy is idle for half of the time, as
most are in production, and neither it nor the load generator decides how fast the other is."""

REST = 1.0
"""Seconds after which a started proxy is idle."""

FIRST_CONNECTIONS = 64
"""Opened and closed before memory is measured: what is made once must not count for a pair."""

AT_ONCE = 32
"""Connections opened together. With one at a time, the proxy's core falls asleep between two, and
its wake-up would dominate: in virtual machines it doubles the figure."""


SETTLING: Mapping[Door, tuple[str, ...]] = {
    Door.PLAIN: ("stream", "stream --cmd message --dir down", "pingpong"),
    Door.KAFKA: (
        "stream --cmd produce",
        "pingpong --cmd fetch --window 4",
        "pingpong --cmd fetch --window 4 --current 1",
        "pingpong --cmd produce --conns 32",
        "pingpong --cmd produce --conns 32 --current 1",
    ),
    Door.TUBEMQ: (
        "pingpong --cmd tube-send --window 4",
        "pingpong --cmd tube-get --window 4 --batch 128",
    ),
}
"""Unmeasured loads that have a proxy reach its speed, by door."""

IDLE: Mapping[Door, tuple[str, ...]] = {
    Door.PLAIN: (),
    Door.KAFKA: ("--cmd", "produce"),
    Door.TUBEMQ: ("--cmd", "tube-send"),
}
"""What idle connections are at a door; at all others they have TLS."""


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


def interleaved(items: Sequence[T], rounds: int) -> Iterator[T]:
    """Yield all items `rounds` times, every other round in reversed order."""
    for number in range(rounds):
        yield from items if number % 2 == 0 else reversed(items)


@dataclass(frozen=True, slots=True)
class Life:
    """One whole life of a proxy. Bytes, microseconds, seconds."""

    start: float
    rss: float
    pss: float
    set_up: float
    pair: float
    foreign: float


Taken = TypeVar("Taken", Sample, Life)


def _foreign(taken: Sample | Life) -> float:
    return taken.foreign


@dataclass
class Bench:
    """What is needed to take samples. `paced`: streams have one rate for all proxies. `worst`: the
    most foreign load of any sample kept."""

    generator: Generator
    cores: Cores
    rounds: int
    seconds: float
    connections: int
    paced: bool = False
    worst: float = 0.0
    patience: float = PATIENCE

    # -- loads -------------------------------------------------------------------------------

    def settle(self, proxies: Sequence[Proxy], rows: Sequence[Row]) -> None:
        """Apply unmeasured load to proxies that need it to reach their speed in these rows."""
        measured = {row.door if row.door in SETTLING else Door.PLAIN for row in rows}
        for proxy, (door, loads) in product(proxies, SETTLING.items()):
            if door in measured and proxy.recipe.has(door):
                for load in loads:
                    row = Row("", "", tuple(load.split()), door=door)
                    self._once(row, proxy, proxy.recipe.settle)

    def load(self, row: Row, proxies: Sequence[Proxy]) -> list[tuple[str, Sample]]:
        """Return all samples of a row, by name of the proxy."""
        say(f"{row.key}: {self.rounds} rounds")
        serving = [proxy for proxy in proxies if proxy.recipe.has(row.door)]
        if self.paced:
            row = self._paced(row, serving)
        targets: list[Proxy | None] = [*serving]
        if row.is_latency:
            targets.append(None)
        samples = []
        for proxy in interleaved(targets, self.rounds):
            sample = self._undisturbed(partial(self._sample, row, proxy))
            samples.append((proxy.recipe.name if proxy else DIRECT, sample))
        return samples

    def _paced(self, row: Row, proxies: Sequence[Proxy]) -> Row:
        """Return the row at a rate that every proxy keeps up with."""
        fastest = [self._sample(row, proxy) for proxy in proxies]
        rate = PACE * min(it["frames"] / it["secs"] for it in fastest)
        say(f"  at {rate:,.0f} frames per second")
        return replace(row, load=(*row.load, "--rate", f"{rate:.0f}"))

    def _undisturbed(self, take: Callable[[], Taken]) -> Taken:
        """Return a sample without foreign load, else the least disturbed of some tries."""
        best = take()
        for _ in range(TRIES - 1):
            if best.foreign <= DISTURBED or self.patience <= 0:
                break
            began = time.monotonic()
            wait_for_calm(DISTURBED, self.patience)
            best = min(best, take(), key=_foreign)
            self.patience -= time.monotonic() - began
        self.worst = max(self.worst, best.foreign)
        return best

    def _sample(self, row: Row, proxy: Proxy | None) -> Sample:
        counted = proxy.messages() if proxy else None
        sample = self._once(row, proxy, self.seconds)
        if proxy is not None and counted is not None and row.load[0] != "shake":
            self._check_counts(row, sample, (proxy.messages() or 0) - counted)
        return sample

    def _once(self, row: Row, proxy: Proxy | None, seconds: float) -> Sample:
        core = self.cores.proxy if row.kind is Kind.LATENCY else self.cores.load
        return self.generator.run(
            [*row.load, *(_arguments(proxy.recipe) if proxy else ("--hello", "-"))],
            target=proxy.target(row.door) if proxy else self.generator.listen,
            pids=proxy.pids if proxy else (),
            cores=(core, core),
            seconds=seconds,
        )

    def _check_counts(self, row: Row, sample: Sample, counted: int) -> None:
        """Check that the proxy counted, without which a figure would be misleading."""
        batch = int(row.load[row.load.index("--batch") + 1]) if "--batch" in row.load else 1
        passed = int(sample["frames_with_warm_up"]) * batch
        if counted < passed:
            raise BenchError(f"{row.key}: {passed} messages passed, {counted} were counted")

    # -- lives -------------------------------------------------------------------------------

    def lives(
        self, recipes: Sequence[Recipe], rounds: int, door: Door = Door.PLAIN
    ) -> list[tuple[str, Life]]:
        """Start, rest, open `connections` idle pairs, stop: `rounds` times."""
        say(f"life: {rounds} rounds of {self.connections} connections")
        return [
            (recipe.name, self._undisturbed(partial(self._life, recipe, door)))
            for recipe in interleaved([it for it in recipes if it.has(door)], rounds)
        ]

    def _life(self, recipe: Recipe, door: Door) -> Life:
        with running(recipe, self.cores) as proxy:
            time.sleep(REST)
            proxy.messages()  # every gateway is scraped, so the first scrape belongs to its life
            idle = proxy.memory()
            self._idle(proxy, FIRST_CONNECTIONS, door)
            sample = self._idle(proxy, self.connections, door)
            return Life(
                start=proxy.seconds_to_listen,
                rss=idle["Rss"],
                pss=idle["Pss"],
                set_up=sample["proxy_us_per_set_up"],
                pair=sample["bytes_per_conn"],
                foreign=sample.foreign,
            )

    def _idle(self, proxy: Proxy, connections: int, door: Door) -> Sample:
        load = ("idle", "--conns", str(connections), "--at-once", str(AT_ONCE), "--hold", "1")
        kind = IDLE.get(door, ("--tls", "1"))
        return self._once(Row("", "", (*load, *kind), door=door), proxy, 1.0)


def _arguments(recipe: Recipe) -> tuple[str, ...]:
    """Return what the load generator is told of a proxy."""
    return "--hello", recipe.hello, "--renumbers", str(int(recipe.renumbers))


def possible_connections(descriptors: int) -> int:
    """Return the wanted number, or what descriptors allow: each connection takes two in each
    process."""
    return max(64, min(IDLE_CONNECTIONS, (descriptors - 200) // 2))
