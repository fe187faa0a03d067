"""Several gateways that share a limit by one store: what passes in all of them, also while the
store is stopped, frozen or restarted.

Each has a client of its own, which offers more than its share, and a little on a topic without a
limit on the same connection.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.clients.loads import LOADS, Offer, Stream, loading, read
from tests.clients.programs import Program
from tests.real.brokers.jars import MissingToolError, Say, pulsar_jars
from tests.real.brokers.standalone import Standalone
from tests.real.gateways import Gateway, Settings, Upstream
from tests.real.metrics import scrape, total
from tests.support.store import StoreServer, installed

from .figures import SECOND, Waits, Window
from .results import Trial
from .scenarios import FREE, LIMITED, Limit, Unit
from .ways import Ruled, ruled

COUNT = 4
WARM_UP = 3.0
"""Seconds before measuring, in which all start and use up bursts."""
WRITING = 60
SETTLING = 2.0
"""Seconds after a change of the store that are not measured: deadlines pass, and waiting clients
are told."""
FREE_RATE = 50.0


@dataclass(frozen=True)
class Shared(Ruled):
    """A gateway with rules and a shared store. `timeout`: of a call; empty: the default."""

    store: str = ""
    timeout: str = ""

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        store = {"url": self.store} | ({"timeout": self.timeout} if self.timeout else {})
        return super().settings(broker, port, admin_port) | {"store": store}


@contextmanager
def replicas(
    broker: Upstream,
    limit: Limit,
    server: StoreServer,
    folder: Path,
    count: int = COUNT,
    timeout: str = "",
) -> Iterator[list[Gateway]]:
    """Yield this many processes, each with a port of its own. `timeout`: see `Shared`."""
    with sharing(broker, ruled(folder, limit).rules, server, folder, count, timeout) as gateways:
        yield gateways


@contextmanager
def sharing(
    broker: Upstream,
    rules: Path,
    server: StoreServer,
    folder: Path,
    count: int,
    timeout: str = "",
) -> Iterator[list[Gateway]]:
    """Yield replicas with any rules."""
    with ExitStack() as running:
        gateways = []
        for number in range(count):
            plan = Shared(rules=rules, store=server.url, timeout=timeout)
            gateways.append(Gateway(broker, plan, folder / f"gateway-{number}"))
            gateways[-1].start()
            running.callback(gateways[-1].stop)
        yield gateways


@dataclass(frozen=True)
class Phase:
    """A change of the store, and how long its effect is measured."""

    name: str
    seconds: float
    change: Callable[[StoreServer], None] = lambda _: None


@dataclass(frozen=True)
class Run:
    """One load through all replicas. `client`: its program; `frame`: messages in a batch."""

    name: str
    client: str
    limit: Limit
    phases: tuple[Phase, ...] = (Phase("all", 10.0),)
    offer: Offer = field(default_factory=lambda: Offer(pending=200))
    times: float = 2.0

    @property
    def lasts(self) -> float:
        return WARM_UP + sum(SETTLING + it.seconds for it in self.phases)


FAULTS = (
    Phase("shared", 8.0),
    Phase("stopped", 8.0, StoreServer.stop),
    Phase("started anew", 8.0, StoreServer.start),
    Phase("frozen", 8.0, StoreServer.freeze),
    Phase("thawed", 8.0, StoreServer.thaw),
)

RUNS = (
    Run("single", "python", Limit(10)),
    Run("single", "python", Limit(100)),
    Run("single", "python", Limit(1000)),
    Run("single", "java", Limit(1000)),
    Run("batches of 100", "go", Limit(20_000), offer=Offer(pending=2000, batch=100)),
    Run("1 KB each", "go", Limit(1_000_000, Unit.BYTES), offer=Offer(pending=500, size=1000)),
    Run("the store is gone", "python", Limit(1000), FAULTS),
)
SHORT = (Run("single", "python", Limit(200), (Phase("all", 3.0),)),)


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure on a real broker, one run after the other."""
    if installed() is None:
        raise MissingToolError("valkey-server or redis-server")
    broker = Standalone(pulsar_jars(say), folder / "broker")
    broker.start()
    try:
        for number, run in enumerate(SHORT if short else RUNS):
            here = folder / f"run-{number}"
            here.mkdir(parents=True)
            yield _trial(run, LOADS[run.client](say), broker, here)
    finally:
        broker.stop()


def _trial(run: Run, program: Program, broker: Upstream, folder: Path) -> Trial:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    server = StoreServer(folder)
    server.start()
    try:
        with replicas(broker, run.limit, server, folder) as gateways:
            facts = played(run, program, server, gateways, folder)
    finally:
        server.stop()
    who = ("replicas", run.name, run.client, "gateway")
    return Trial(
        *who, at, run.limit.rate, run.limit.unit.value, facts=facts, offer=asdict(run.offer)
    )


def played(
    run: Run, program: Program, server: StoreServer, gateways: Sequence[Gateway], folder: Path
) -> dict[str, Any]:
    """Return what passed in each phase, and how often the store was called."""
    base = f"persistent://public/default/{{}}-{folder.name}-{time.time_ns()}"
    topics = {name: base.format(name) for name in (LIMITED, FREE)}
    offer = Offer(**asdict(run.offer) | {"limit": int(run.lasts) + WRITING})
    offered = run.times * run.limit.rate / len(gateways) / max(1, run.offer.size)
    streams = [(topics[LIMITED], offered), (topics[FREE], FREE_RATE)]
    files = [folder / f"client-{number}" for number in range(len(gateways))]
    with ExitStack() as running:
        clients = [
            running.enter_context(loading(program, gateway.untapped_url, streams, file, offer))
            for gateway, file in zip(gateways, files, strict=True)
        ]
        for client in clients:
            client.await_ready()
        windows, passed, calls = _pass_through(run, server, gateways)
        for client in clients:
            client.tell_to_stop()
        for client in clients:
            client.await_loaded(WRITING)
    loads = [{name: _stream(file, topic) for name, topic in topics.items()} for file in files]
    size = _size(gateways) if run.limit.unit is Unit.BYTES else 1.0
    return {
        "phases": [
            _phase(phase, window, loads, size, run.limit) | asdict(during)
            for phase, window, during in zip(run.phases, windows, passed, strict=True)
        ],
        "calls": calls,
        "acknowledged": sum(len(list(it[LIMITED].acknowledged)) for it in loads),
    }


@dataclass(frozen=True)
class Passed:
    """How many limited messages gateways forwarded in a time that is not shorter than that in which
    they did: receipts may reach a client late, but these counts are the gateways' own."""

    forwarded: int
    within: float


def _pass_through(
    run: Run, server: StoreServer, gateways: Sequence[Gateway]
) -> tuple[list[Window], list[Passed], list[float]]:
    """Return the measured times, what passed in each, and each gateway's calls of the store per
    second in the first one."""
    windows, passed, calls = [], [], [0.0]
    time.sleep(WARM_UP)
    for phase in run.phases:
        phase.change(server)
        time.sleep(SETTLING)
        before = [_calls(it) for it in gateways]
        windows.append(Window(time.time_ns(), phase.seconds))
        begun, had = time.monotonic(), _forwarded(gateways)
        time.sleep(phase.seconds)
        passed.append(Passed(_forwarded(gateways) - had, time.monotonic() - begun))
        if len(windows) == 1:
            pairs = zip(gateways, before, strict=True)
            calls = [(_calls(it) - then) / phase.seconds for it, then in pairs]
    return windows, passed, calls


def _forwarded(gateways: Sequence[Gateway]) -> int:
    """Return how many limited messages the gateways have forwarded to brokers. Fixtures may name a
    gateway several times."""
    name = "gateway_topic_messages_total"
    return sum(
        int(total(_of_limited(gateway), name, direction="to_broker")) for gateway in {*gateways}
    )


def _of_limited(gateway: Gateway) -> str:
    """Return the metrics of the limited topic."""
    lines = scrape(gateway.metrics_url).splitlines()
    return "\n".join(line for line in lines if f"/{LIMITED}-" in line)


def _calls(gateway: Gateway) -> float:
    return total(scrape(gateway.metrics_url), "gateway_store_calls_total")


def _size(gateways: Sequence[Gateway]) -> float:
    """Return the bytes of a message of the limited topic as a gateway counts them."""
    names = ("gateway_topic_bytes_total", "gateway_topic_messages_total")
    sums = [0.0, 0.0]
    for gateway in gateways:
        text = _of_limited(gateway)
        for at, name in enumerate(names):
            sums[at] += total(text, name, direction="to_broker")
    return sums[0] / max(1.0, sums[1])


def _stream(file: Path, topic: str) -> Stream:
    (found,) = (it for it in read(file) if it.topic == topic)
    return found


def _shares(window: Window, loads: Sequence[Mapping[str, Stream]], size: float) -> list[float]:
    return [
        window.count(when for _, when in load[LIMITED].receipts) * size / window.seconds
        for load in loads
    ]


def _phase(
    phase: Phase, window: Window, loads: Sequence[Mapping[str, Stream]], size: float, limit: Limit
) -> dict[str, Any]:
    """Return a phase's figures.

    `shares`: units a second of each replica; `off`: by how much all together exceed the limit;
    `settling`: the same before the phase is measured; `longest`: seconds that a message without a
    limit took, in both.
    """
    start = window.start - int(SETTLING * SECOND)
    shares = _shares(window, loads, size)
    before = _shares(Window(start, SETTLING), loads, size)
    both = Window(start, window.seconds + SETTLING)
    free = Waits.of(pair for load in loads for pair in load[FREE].receipts if both.holds(pair[1]))
    return {
        "name": phase.name,
        "shares": shares,
        "off": sum(shares) / limit.rate - 1,
        "settling": sum(before) / limit.rate - 1,
        "most": free.most,
        "longest": free.longest,
    }
