"""The memory and the CPU of one gateway process, as each of the chart's modes configures it.

What pods ask for follows from these figures, by `helm/broker-gateway/files/memory.yaml` and
docs/performance.md#what-pods-should-ask-for. Each mode has a process of its own, which goes through
all steps, so that the last one shows all bounds reached together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median

from gateway.config.model import ResourceLimits
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.hostile.peers import Client
from tests.soak import brokers, report
from tests.soak.brokers import Brokers
from tests.soak.paced import FLOWS, Flows
from tests.soak.pods import SOURCES, Pod, Size, running
from tests.soak.report import MIB
from tests.soak.runner import claim
from tests.soak.stalled import PAYLOAD, open_taken
from tests.soak.streams import Block, Stream, fill
from tests.support.frames import message, metadata_of, simple, tail

MODES = "edge", "shaper", "sidecar"

OF_ONE = 100
"""Rules of a sidecar at most: it serves one application."""

PINGS = 2 / 30
"""A second, of an idle connection: its client and its broker each send one every 30 s."""

PINGED = 30
"""Seconds between two rounds of PINGs of all idle connections, where nothing is measured."""

PRODUCERS = 500
"""Those that one connection opens together. The socket buffers take all of their frames."""

AT_ONCE = 40
"""Stalled consumers that are added together."""

BLOCKS = 8
"""Of 256 KiB, sent to each of them: more than the kernel takes before the gateway keeps any."""

STALLED = 800
"""Consumers that stall at most: fewer fill the bound, unless the kernel takes all."""

NAME = 40
"""Characters of a topic that fills what connections keep: with usual names a producer takes more
than is counted for it."""

KEPT = 0.85
"""The part that is filled of what connections may keep. The rest is for those that come later."""

WAITING = 0.5
"""The part that is filled of what may wait for slow peers. Above it reads are small, so that the
rest takes thousands of connections. The kernel may take some of it again."""

SETTLED = 1.0
"""Seconds in which the gateway receives what all connections sent."""

_LARGE = [{"key": "k", "value": "v" * 4_500}]
_PART = simple(Kind.PRODUCER, topic="t", producer_id=2, request_id=2, metadata=_LARGE)[:4_000]
"""Most of a frame. Each connection may keep 4 KiB beside what `limits.buffered` bounds."""

LATE = 0.1
"""The part of its time by which a load may come late: its CPU is of another rate then."""

RESERVED = 200
"""Connections that idle ones leave free for flows, slow peers and many producers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done. `idle`: connections at first, and later; no more than the mode allows.
    `rates`: messages a second. `punctual`: a load that comes late is no measurement. `shakes`: TLS
    handshakes alone. `limits`: in place of the modes'."""

    idle: tuple[int, int] = (1_000, 4_000)
    rates: tuple[int, ...] = (1_000, 5_000)
    punctual: bool = True
    seconds: float = 4.0
    samples: int = 3
    shakes: int = 1_000
    rules: int = 2_000
    flows: int = FLOWS
    limits: Mapping[str, str] = field(default_factory=dict)

    def rules_of(self, mode: str) -> int:
        """Return the number of rules in force."""
        return min(self.rules, OF_ONE) if mode == "sidecar" else self.rules


@dataclass(slots=True)
class Outcome:
    """The figures of a mode, by the names of their rows. `cores`: of one, in the median of all
    samples; `costs`: seconds of CPU. `filled`: bytes that the gateway counted. `idle`: the numbers
    of connections. `limits`: what the mode allows."""

    mode: str
    resources: dict[str, dict[str, str]]
    limits: ResourceLimits
    idle: tuple[int, int]
    sizes: dict[str, Size] = field(default_factory=dict)
    cores: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)

    @property
    def connection(self) -> float:
        """Return the bytes that an idle connection takes at most."""
        idle = self._grown("started", "idle, most")
        idle += self._grown("slow peers wait", "each idle connection holds 4 KiB")
        return idle / self.idle[1]

    @property
    def remembered(self) -> float:
        """Return the bytes that each counted byte takes of what connections keep."""
        return self._grown("idle, most", "connections keep") / self.filled["connections keep"]

    @property
    def buffered(self) -> float:
        """Return the same of what waits for slow peers."""
        return self._grown("connections keep", "slow peers wait") / self.filled["slow peers wait"]

    @property
    def whole(self) -> float:
        """Return the bytes that all takes that the mode allows, in proportion to what was done."""
        return (
            self.sizes["started"].rss
            + self.limits.connections * self.connection
            + self.limits.all_remembered * self.remembered
            + self.limits.buffered * self.buffered
            + self._grown("idle, most", "rules are read again")
        )

    def _grown(self, before: str, after: str) -> int:
        return max(0, self.sizes[after].rss - self.sizes[before].rss)


def run(folder: Path, modes: Sequence[str] = MODES, plan: Plan = Plan()) -> list[Outcome]:
    """Measure the modes one after the other, and claim that no bound is passed."""
    outcomes = []
    for mode in modes:
        here = folder / mode
        here.mkdir()
        with (
            brokers.in_thread(4) as behind,
            running(here, mode, behind, plan.rules_of(mode), plan.limits) as pod,
            ExitStack() as stack,
        ):
            outcomes.append(_Steps(mode, pod, behind, stack, plan).outcome())
    return outcomes


class _Steps:
    """The steps of one mode, in their order. Clients end with `stack`."""

    def __init__(self, mode: str, pod: Pod, behind: Brokers, stack: ExitStack, plan: Plan) -> None:
        self._pod, self._behind, self._stack, self._plan = pod, behind, stack, plan
        allowed = pod.limits.connections
        first, most = (min(number, allowed - RESERVED) for number in plan.idle)
        self._it = Outcome(mode, pod.resources, pod.limits, (min(first, most // 2), most))
        self._idle: list[Client] = []
        self._pinged = time.monotonic()

    def outcome(self) -> Outcome:
        """Take all steps, and return what they showed."""
        it, pod = self._it, self._pod
        it.costs["start"] = pod.cpu
        it.sizes["started"] = pod.size
        self._open(it.idle[0])
        it.sizes["idle, first"] = pod.size
        self._rest()
        self._carry()
        it.costs["1,000 connections opened"] = self._open(it.idle[1])
        it.sizes["idle, most"] = pod.size
        it.sizes["rules are read again"] = pod.reloaded()
        if pod.speaks_tls:
            it.costs["1,000 TLS handshakes"] = self._shaken()
        self._remember()
        self._stall()
        self._hold()
        it.sizes["all of this, and rules are read again"] = pod.reloaded()
        connections = sum(pod.metrics().matching("gateway_connections{"))
        claim(connections >= it.idle[1], "idle connections have ended")
        return it

    def _open(self, number: int) -> float:
        """Open connections until there are so many; return the CPU for a thousand."""
        before, had = self._pod.cpu, len(self._idle)
        for it in range(had, number):
            client = self._stack.enter_context(self._pod.client(it))
            topic = f"persistent://public/default/t-{it}"
            client.say(simple(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1))
            assert client.hear().type == BaseCommand.PRODUCER_SUCCESS
            self._idle.append(client)
        return 1000 * (self._pod.cpu - before) / (number - had)

    def _rest(self) -> None:
        def rest() -> None:
            over = time.monotonic() + self._plan.seconds
            pause = 1 / (PINGS * len(self._idle))
            while time.monotonic() < over:
                for client in self._idle:
                    client.say(simple(Kind.PING))
                    client.hear()
                    time.sleep(pause)
                    if time.monotonic() > over:
                        break

        self._it.cores["idle, first"], _ = self._used(rest)

    def _ping(self) -> None:
        """Have idle connections ping if it is time to, else they would end."""
        if time.monotonic() < self._pinged + PINGED:
            return
        self._pinged = time.monotonic()
        for client in self._idle:
            client.say(simple(Kind.PING))
        for client in self._idle:
            assert client.hear().type == BaseCommand.PONG

    def _carry(self) -> None:
        with ExitStack() as stack:
            flows = Flows(self._pod, self._behind, stack, self._plan.flows)
            for rate in self._plan.rates:
                self._ping()
                name = f"{rate:,} messages/s"
                carried = [0]

                def carry(rate: int = rate, carried: list[int] = carried) -> None:
                    carried[0] += flows.run(rate, self._plan.seconds)
                    if self._plan.punctual:
                        claim(flows.late < LATE * self._plan.seconds, f"{flows.late:.2f} s late")

                cores, used = self._used(carry)
                self._it.cores[name] = cores
                self._it.costs[f"100,000 messages at {rate:,}/s"] = 100_000 * used / carried[0]
                self._it.sizes[name] = self._pod.size

    def _used(self, work: Callable[[], None]) -> tuple[float, float]:
        """Return how much of a core some work takes, in the median of all samples, and the seconds
        of CPU of all of them."""
        shares, total = [], 0.0
        for _ in range(self._plan.samples):
            began, before = time.monotonic(), self._pod.cpu
            work()
            used = self._pod.cpu - before
            shares.append(used / (time.monotonic() - began))
            total += used
        return median(shares), total

    def _shaken(self) -> float:
        """Return the CPU of a thousand handshakes behind which nothing comes."""
        before = self._pod.cpu
        for it in range(self._plan.shakes):
            self._pod.knock(it).close()
        return 1000 * (self._pod.cpu - before) / self._plan.shakes

    def _remember(self) -> None:
        """Open producers with long names, until connections keep as much as they may."""
        bound = self._pod.limits.all_remembered
        clients = [self._stack.enter_context(self._pod.client(it)) for it in range(SOURCES)]
        numbers = count()
        for client in cycle(clients):
            self._ping()
            if self._pod.metrics().remembered > KEPT * bound:
                break
            _produce(client, islice(numbers, PRODUCERS))
        self._filled("connections keep", self._pod.metrics().remembered, bound)

    def _stall(self) -> None:
        """Add consumers that do not read, until as much waits for them as may wait."""
        bound = self._pod.limits.waiting
        block = Block(message(1, tail(metadata_of(), PAYLOAD)))
        streams: list[Stream] = []
        while self._pod.metrics().buffered < WAITING * bound and len(streams) < STALLED:
            self._ping()
            added = []
            for number in range(AT_ONCE):
                client = self._stack.enter_context(self._pod.client(number, reluctant=True))
                open_taken(client, consume=True)
                broker = self._stack.enter_context(self._behind.taken.get(timeout=10))
                added.append(Stream(broker, client.sock, block, BLOCKS))
            streams += added
            fill(added)
        self._filled("slow peers wait", self._pod.metrics().buffered, bound)

    def _hold(self) -> None:
        """Have each idle connection send most of a frame that must be held whole."""
        for client in self._idle:
            client.say(_PART)
        time.sleep(SETTLED)
        self._it.sizes["each idle connection holds 4 KiB"] = self._pod.size

    def _filled(self, name: str, kept: float, bound: int) -> None:
        self._it.filled[name] = int(kept)
        self._it.sizes[name] = self._pod.size
        claim(kept > bound / 4, f"{self._it.mode}, {name}: {kept / MIB:.0f} MiB are not filled")


def _produce(client: Client, numbers: Iterable[int]) -> None:
    """Open producers on topics of their own."""
    opening = [
        simple(
            Kind.PRODUCER,
            topic=f"persistent://public/default/{it:x>{NAME}}",
            producer_id=it,
            request_id=it,
        )
        for it in numbers
    ]
    client.say(b"".join(opening))
    for _ in opening:
        assert client.hear().type == BaseCommand.PRODUCER_SUCCESS


# -- tables ------------------------------------------------------------------------------------


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table of the memory, and one of the CPU."""
    modes = [it.mode for it in outcomes]
    sizes = [
        [_titled(row, outcomes), *(_mib(it.sizes[row]) for it in outcomes)]
        for row in outcomes[0].sizes
    ]
    sizes += [
        [f"counted: {row}", *(f"{it.filled[row] / MIB:.0f}" for it in outcomes)]
        for row in outcomes[0].filled
    ]
    sizes += [
        ["connection, KiB", *(f"{it.connection / 2**10:.1f}" for it in outcomes)],
        ["remembered", *(f"{it.remembered:.2f}" for it in outcomes)],
        ["buffered", *(f"{it.buffered:.2f}" for it in outcomes)],
    ]
    sizes.append(["all that the mode allows", *(f"{it.whole / MIB:.0f}" for it in outcomes)])
    sizes.append(["asked for", *(it.resources["requests"]["memory"] for it in outcomes)])
    used = [
        [_titled(row, outcomes), *(f"{it.cores[row]:.3f} cores" for it in outcomes)]
        for row in outcomes[0].cores
    ]
    rows = dict.fromkeys(row for it in outcomes for row in it.costs)
    used += [[row, *(_seconds(it.costs.get(row)) for it in outcomes)] for row in rows]
    used.append(["asked for", *(it.resources["requests"]["cpu"] for it in outcomes)])
    return "\n\n".join(
        [
            report.table(["MiB: RSS (PSS) + kernel", *modes], sizes),
            report.table(["CPU", *modes], used),
        ]
    )


def _titled(row: str, outcomes: Sequence[Outcome]) -> str:
    """Return the row's title, with the numbers of connections if it is about idle ones."""
    if not row.startswith("idle"):
        return row
    numbers = [it.idle[row.endswith("most")] for it in outcomes]
    return " / ".join(f"{it:,}" for it in dict.fromkeys(numbers)) + " idle connections"


def _mib(size: Size) -> str:
    rss, pss, kernel = (round(it / MIB) for it in (size.rss, size.pss, size.kernel))
    return f"{rss} ({pss}) + {kernel}"


def _seconds(cost: float | None) -> str:
    return "" if cost is None else f"{cost:.2f} s"
