"""Limits of what consumers receive: how exact they are, and how a limited consumer affects another
on the same connection.

Producers send to the broker itself; two consumers of one client, and so of one connection, receive
through a gateway: one on a topic with a limit, one on a topic without.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped, unused-ignore]

from tests.clients.loads import Offer, loading, python_load, read
from tests.clients.programs import Program
from tests.real.brokers.jars import Say, pulsar_jars
from tests.real.brokers.standalone import Standalone
from tests.real.clients import Client, Consumer, close_client, open_client
from tests.real.gateways import Upstream

from .figures import SECOND, Waits, Window
from .results import Trial
from .scenarios import FREE, LIMITED, Limit
from .ways import limited

WARM_UP = 3.0
"""Seconds before measuring, in which the burst is used up."""
SECONDS = 10.0
WRITING = 60
POLL_MS = 100


@dataclass(frozen=True)
class Run:
    """One run. `times`: the limited topic's traffic as a multiple of its limit; `free`: messages a
    second of the other topic, 0: no other topic. `queue`: messages that a consumer requests in
    advance."""

    name: str
    limit: Limit
    times: float
    free: float = 0.0
    batch: int = 0
    queue: int = 1000
    seconds: float = SECONDS


def _accuracy(rate: float, times: float, batch: int = 0, queue: int = 1000) -> Run:
    how = f"batches of {batch}" if batch else "single"
    return Run(f"{how}, queue of {queue}", Limit(rate, action="dispatch"), times, 0, batch, queue)


BESIDE = Run("beside another", Limit(500, action="dispatch"), 1.0, free=2000.0)
RUNS = (
    _accuracy(10, 10),
    _accuracy(100, 10),
    _accuracy(1000, 5),
    _accuracy(1000, 5, queue=10),
    _accuracy(1000, 10, batch=50),
    _accuracy(5000, 3, batch=100),
    *(replace(BESIDE, times=times) for times in (1.0, 10.0, 10.0, 1.0)),
)
SHORT = (replace(BESIDE, times=3.0, free=100.0, seconds=2.0),)


class Received:
    """One consumer's messages: their times and contents."""

    def __init__(self, consumer: Consumer) -> None:
        self.messages: list[tuple[int, bytes]] = []
        self._consumer = consumer
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                message = self._consumer.receive(POLL_MS)
            except pulsar.Timeout:
                continue
            self.messages.append((time.time_ns(), message.data()))
            self._consumer.acknowledge(message)

    def delays(self, sent: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Yield the times of sending and arrival of each message. `sent`: the times of each
        program, by its tag."""
        for when, content in self.messages:
            number, tag, *_ = content.decode().split(" ")
            yield sent[tag][int(number)], when


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure on a real broker, one run after the other."""
    broker = Standalone(pulsar_jars(say), folder / "broker")
    broker.start()
    try:
        for number, run in enumerate(SHORT if short else RUNS):
            here = folder / f"run-{number}"
            here.mkdir(parents=True)
            yield _trial(run, python_load(say), broker, here)
    finally:
        broker.stop()


def _trial(run: Run, program: Program, broker: Upstream, folder: Path) -> Trial:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    facts = played(run, program, broker, folder)
    who = ("dispatch", run.name, "python", "gateway")
    limit = run.limit
    return Trial(*who, at, limit.rate, limit.unit.value, facts=facts | {"times": run.times})


def played(run: Run, program: Program, broker: Upstream, folder: Path) -> dict[str, float]:
    """Return the rate of the limited consumer, and the delays of the other."""
    base = f"persistent://public/default/{{}}-{folder.name}-{time.time_ns()}"
    rates = {LIMITED: run.limit.rate * run.times, FREE: run.free}
    topics = {name: base.format(name) for name, rate in rates.items() if rate}
    with limited(broker, run.limit, folder) as gateway:
        client = open_client(gateway.untapped_url)
        try:
            return _received(run, program, broker, folder, topics, rates, client)
        finally:
            close_client(client)


def _received(
    run: Run,
    program: Program,
    broker: Upstream,
    folder: Path,
    topics: Mapping[str, str],
    rates: Mapping[str, float],
    client: Client,
) -> dict[str, float]:
    found = {name: Received(_consumer(client, topic, run)) for name, topic in topics.items()}
    lasts = WARM_UP + run.seconds
    offer = Offer(batch=run.batch, pending=5000, patience=10, limit=int(lasts) + WRITING)
    file = folder / "producers"
    streams = [(topic, rates[name]) for name, topic in topics.items()]
    with loading(program, broker.service_url, streams, file, offer) as running:
        running.await_ready()
        time.sleep(lasts)
        running.tell_to_stop()
        running.await_loaded(WRITING)
    for each in found.values():
        each.stop()
    return _facts(run, found, {f"{file.stem}.{n}": it.sent for n, it in enumerate(read(file))})


def _consumer(client: Client, topic: str, run: Run) -> Consumer:
    return client.subscribe(topic, "s", receiver_queue_size=run.queue)


def _facts(run: Run, found: Mapping[str, Received], sent: Mapping[str, Any]) -> dict[str, float]:
    began = max(times[0] for times in sent.values())
    window = Window(began + int(WARM_UP * SECOND), run.seconds)
    passed = {
        name: window.count(when for when, _ in each.messages) / run.seconds
        for name, each in found.items()
    }
    facts = {"passed": passed[LIMITED], "off": passed[LIMITED] / run.limit.rate - 1}
    facts["received"] = sum(len(each.messages) for each in found.values())
    if FREE in found:
        waits = Waits.of(pair for pair in found[FREE].delays(sent) if window.holds(pair[1]))
        facts |= {"free": passed[FREE]} | {f"free {name}": it for name, it in asdict(waits).items()}
    return facts
