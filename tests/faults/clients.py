"""The affected clients: a producer and a consumer of each client library and way, each a process,
and each pair with a topic of its own."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TypeVar

from tests.clients.builders import BUILDERS, python_client
from tests.clients.programs import Program, Received, Running, Sent
from tests.real.brokers.admin import AdminError
from tests.real.brokers.cluster import Cluster
from tests.real.brokers.jars import Say

from .results import Outcome

T = TypeVar("T")

INTERVAL_MS = 10
SUBSCRIPTION = "s"
LIMIT_SECONDS = 240
"""Longer than any trial takes."""
CATCH_UP_SECONDS = 30
"""Seconds to receive what was stored and not yet received."""
HEAR_SECONDS = 0.5
"""Seconds that consumers with all messages listen for repeats."""


def programs(say: Say) -> list[Program]:
    """Return the clients. Raises MissingToolError if this machine lacks their tools."""
    made = [python_client(say), *(build(say) for build in BUILDERS.values())]
    return [replace(program, limit=LIMIT_SECONDS) for program in made]


@dataclass(frozen=True)
class Pair:
    """One producer and one consumer with a topic of their own."""

    client: str
    way: str
    topic: str
    producer: Running
    consumer: Running

    def outcome(self, sent: Sent, received: Received) -> Outcome:
        confirmed = sent.acknowledged
        return Outcome(
            self.client,
            self.way,
            acknowledged=len(confirmed),
            # Messages after the last acknowledged one do not count as lost: the load had ended.
            unconfirmed=max(confirmed, default=-1) + 1 - len(confirmed),
            received=len(received.received),
            missing=len(confirmed - received.received),
            doubled=received.stored_twice,
            again=received.redelivered,
            disordered=received.out_of_order,
            longest=sent.longest_send_ms / 1000,
            errors=(*sent.errors, *received.errors),
        )


@dataclass(frozen=True)
class Crowd:
    """All pairs of a trial."""

    pairs: Sequence[Pair]

    @property
    def topics(self) -> list[str]:
        return [pair.topic for pair in self.pairs]

    def await_ready(self) -> None:
        for pair in self.pairs:
            pair.consumer.await_ready()
            pair.producer.await_ready()

    def finish(self, cluster: Cluster) -> list[Outcome]:
        """Stop sending, and return what became of the sent messages."""
        for pair in self.pairs:
            pair.producer.tell_to_stop()
        sent = [_reported(pair.producer.sent) for pair in self.pairs]
        _await_no_backlog(cluster, self.topics)
        time.sleep(HEAR_SECONDS)
        for pair in self.pairs:
            pair.consumer.tell_to_stop()
        received = [_reported(pair.consumer.received) for pair in self.pairs]
        return [_outcome(*said) for said in zip(self.pairs, sent, received, strict=True)]


def _outcome(pair: Pair, sent: Sent | str, received: Received | str) -> Outcome:
    if isinstance(sent, str) or isinstance(received, str):
        broken = "; ".join(said for said in (sent, received) if isinstance(said, str))
        return Outcome(pair.client, pair.way, broken=broken)
    return pair.outcome(sent, received)


def _reported(ask: Callable[[], T]) -> T | str:
    """Return a program's report, or the reason for its absence."""
    try:
        return ask()
    except (AssertionError, ValueError, TimeoutExpired) as error:
        return f"{ask.__name__}: {error}"


def _await_no_backlog(cluster: Cluster, topics: Sequence[str]) -> None:
    """Return when all is acknowledged, or after a while."""
    deadline = time.monotonic() + CATCH_UP_SECONDS
    for topic in topics:
        while _backlog(cluster, topic) != 0 and time.monotonic() < deadline:
            time.sleep(0.1)


def _backlog(cluster: Cluster, topic: str) -> int | None:
    """Return the backlog, or None if no broker can tell it now."""
    with suppress(AdminError, OSError, KeyError):
        found = cluster.admin.stats(topic)["subscriptions"][SUBSCRIPTION]["msgBacklog"]
        assert isinstance(found, int)
        return found
    return None


@contextmanager
def crowd(
    programs: Sequence[Program], ways: Mapping[str, str], namespace: str, logs: Path
) -> Iterator[Crowd]:
    """Yield a running pair of each program and way (a name, and its URL)."""
    with ExitStack() as running:
        pairs = [
            _pair(running, program, way, url, namespace, logs)
            for program in programs
            for way, url in ways.items()
        ]
        them = Crowd(pairs)
        them.await_ready()
        yield them


def _pair(
    running: ExitStack, program: Program, way: str, url: str, namespace: str, logs: Path
) -> Pair:
    name = f"{program.name}-{way}"
    topic = f"persistent://{namespace}/{name}"
    consuming = program.consuming(url, topic, SUBSCRIPTION, 0, logs / f"{name}-consumer.log")
    consumer = running.enter_context(consuming)
    producing = program.producing(
        url, topic, 0, logs / f"{name}-producer.log", key=True, interval_ms=INTERVAL_MS
    )
    return Pair(program.name, way, topic, running.enter_context(producing), consumer)
