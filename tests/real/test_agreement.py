"""Metrics, console, usage records and the broker's statistics agree to the message, by topic."""

from __future__ import annotations

import json
import urllib.request
import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from gateway.usage import reading
from tests.clients.builders import BUILDERS
from tests.clients.programs import Program
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_ports
from tests.real.brokers.standalone import Standalone
from tests.real.clients import Client, fresh_topic, numbered, receive, send_all, wait_until
from tests.real.fixtures import Connect, Reach, Route, or_skip
from tests.real.gateways import HOST, PASS_THROUGH
from tests.real.metrics import scrape, total, totals

pytestmark = [pytest.mark.real, pytest.mark.gateway_only]

TENANTS, TOPICS = 3, 50

COUNT = 200
"""Messages of each program."""

PACE_MS = 2
"""Between the messages of a client that is killed. A broker stops reading from a connection with
1,000 messages that it has not stored yet, and forgets what it had not read when the client goes, so
it would store less than it was sent. At this pace it would have to be two seconds late."""


class Counts(dict[str, tuple[int, int]]):
    """Messages to and from the broker, by topic."""


@dataclass(frozen=True)
class Tenants:
    """Topics of several tenants of a real broker."""

    broker: Standalone
    namespaces: tuple[str, ...]

    def topic(self, number: int) -> str:
        return fresh_topic(namespace=self.namespaces[number % len(self.namespaces)])


@pytest.fixture
def tenants(pulsar: Standalone) -> Tenants:
    names = [f"t{uuid.uuid4().hex[:8]}" for _ in range(TENANTS)]
    for name in names:
        pulsar.admin.create_tenant(name)
        pulsar.admin.create_namespace(f"{name}/orders")
    return Tenants(pulsar, tuple(f"{name}/orders" for name in names))


@dataclass(frozen=True)
class Told:
    """What a gateway tells in other ways than by metrics."""

    console: str
    records: Path

    def on_page(self, topics: list[str]) -> Counts:
        """Return what the console shows: messages to and from the broker, by topic."""
        with urllib.request.urlopen(f"{self.console}/api/v1/topics?limit=1000", timeout=10) as it:
            rows = {row["topic"]: row for row in json.load(it)["rows"]}
        return Counts(
            {
                topic: (rows[topic]["messages_in"], rows[topic]["messages_out"])
                for topic in topics
                if topic in rows
            }
        )

    def recorded(self, topics: list[str]) -> Counts:
        """Return what is billed: messages that were confirmed, and delivered, by topic."""
        sums = {(topic, op): 0 for topic in topics for op in ("send", "deliver")}
        for record in reading.usage(self.records):
            key = record.partition or record.topic or "", record.op
            if key in sums:
                sums[key] += record.msgs
        return Counts({it: (sums[it, "send"], sums[it, "deliver"]) for it in topics})


@pytest.fixture
def told(tmp_path: Path) -> Told:
    (port,) = free_ports(HOST, 1)
    return Told(f"http://{HOST}:{port}", tmp_path / "usage")


@pytest.fixture
def alone(pulsar: Standalone, reach: Reach, told: Told) -> Route:
    """Return the route through a gateway that no other test uses."""
    usage = {"folder": str(told.records), "interval": "1s", "close_after": "1s"}
    more = {"usage": usage, "console": {"bind": told.console.removeprefix("http://")}}
    return reach(pulsar, replace(PASS_THROUGH, more=more))


@pytest.fixture
def programs(say: Say) -> list[Program]:
    return [or_skip(BUILDERS[name], say) for name in sorted(BUILDERS)]


def broker_counts(broker: Standalone, topics: list[str]) -> Counts:
    """Return what the broker counted: messages published to each topic, and dispatched from it."""
    found = Counts()
    for topic in topics:
        stats = broker.admin.stats(topic)
        found[topic] = stats["msgInCounter"], stats["msgOutCounter"]
    return found


def gateway_counts(route: Route, topics: list[str]) -> Counts:
    assert route.gateway is not None
    by_topic = totals(
        scrape(route.gateway.metrics_url), "gateway_topic_messages_total", "topic", "direction"
    )
    found = Counts()
    for topic in topics:
        both = (by_topic.get((topic, way), 0) for way in ("to_broker", "to_client"))
        to_broker, to_client = both
        found[topic] = int(to_broker), int(to_client)
    return found


def assert_agreement(broker: Standalone, route: Route, topics: list[str]) -> Counts:
    """Wait until both counts are the same, and return them."""
    theirs = ours = Counts()

    def agree() -> bool:
        nonlocal theirs, ours
        theirs, ours = broker_counts(broker, topics), gateway_counts(route, topics)
        return theirs == ours

    with suppress(AssertionError):
        wait_until(agree)
    assert theirs == ours
    return ours


def python_traffic(client: Client, topics: list[str]) -> None:
    """Send and receive another number of messages on each topic, in batches on every second one."""
    for number, topic in enumerate(topics, start=1):
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic, batching_enabled=number % 2 == 0)
        send_all(producer, numbered(number))
        receive(consumer, number)


def program_traffic(programs: list[Program], url: str, topics: list[str], logs: Path) -> None:
    """Let each program send to its topic, in batches, and receive that again."""
    with ExitStack() as running:
        consumers = []
        for program, topic in zip(programs, topics, strict=True):
            log = logs / f"{program.name}-consumer.log"
            consumers.append(running.enter_context(program.consuming(url, topic, "s", COUNT, log)))
        for program, topic, consumer in zip(programs, topics, consumers, strict=True):
            consumer.await_ready()
            log = logs / f"{program.name}-producer.log"
            with program.producing(url, topic, COUNT, log, batch=True) as producer:
                assert producer.sent().acknowledged == set(range(COUNT))
            assert consumer.received().received == set(range(COUNT))


def test_clients_of_three_languages_are_counted_as_the_broker_counts_them(
    tenants: Tenants,
    alone: Route,
    told: Told,
    connect: Connect,
    programs: list[Program],
    logs: Path,
) -> None:
    topics = [tenants.topic(number) for number in range(TOPICS)]
    theirs, ours = topics[: len(programs)], topics[len(programs) :]
    python_traffic(connect(alone.url), ours)
    program_traffic(programs, alone.url, theirs, logs)
    found = assert_agreement(tenants.broker, alone, topics)
    assert told.on_page(topics) == found
    wait_until(lambda: told.recorded(topics) == found)
    assert sum(sent for sent, _ in found.values()) == sum(range(len(ours) + 1)) + COUNT * len(
        programs
    )


def await_counted(route: Route, topic: str, number: int) -> None:
    """Wait until more messages than that passed to the broker, and a receipt to the client."""
    assert route.gateway is not None
    url = route.gateway.metrics_url
    receipts = partial(total, name="gateway_topic_receipts_total", topic=topic)
    wait_until(
        lambda: gateway_counts(route, [topic])[topic][0] > number and receipts(scrape(url)) > 0
    )


@pytest.fixture
def killed(programs: list[Program], tenants: Tenants, alone: Route, logs: Path) -> list[str]:
    """Let each program send without end, and kill it; return the topics."""
    topics = [tenants.topic(number) for number in range(len(programs))]
    for program, topic in zip(programs, topics, strict=True):
        log = logs / f"{program.name}.log"
        with program.producing(alone.url, topic, 0, log, interval_ms=PACE_MS) as producer:
            producer.await_ready()
            await_counted(alone, topic, COUNT)
            producer.kill()
    return topics


def test_what_a_killed_client_had_sent_is_counted(
    tenants: Tenants, alone: Route, told: Told, killed: list[str]
) -> None:
    found = assert_agreement(tenants.broker, alone, killed)
    assert all(sent > COUNT for sent, _ in found.values())
    assert told.on_page(killed) == found
    wait_until(lambda: all(sent > 0 for sent, _ in told.recorded(killed).values()))
    # Receipts that were on their way to a client that is gone are not billed.
    for topic, (confirmed, _) in told.recorded(killed).items():
        assert confirmed <= found[topic][0]


def test_records_agree_with_the_clients_over_a_move_and_a_drain(
    tenants: Tenants, alone: Route, told: Told, connect: Connect
) -> None:
    topics = [tenants.topic(number) for number in range(TENANTS)]
    client = connect(alone.url)
    producers = [client.create_producer(topic) for topic in topics]
    consumers = [client.subscribe(topic, "s") for topic in topics]
    for part in range(3):
        for producer in producers:
            send_all(producer, numbered(COUNT, part * COUNT))
        if part == 1:
            for topic in topics:
                tenants.broker.admin.unload(topic)
    for consumer in consumers:
        receive(consumer, 3 * COUNT)
    assert alone.gateway is not None
    alone.gateway.stop()
    found = told.recorded(topics)
    assert [sent for sent, _ in found.values()] == [3 * COUNT] * TENANTS
    # What was delivered before the move and not acknowledged is delivered again.
    assert all(delivered >= 3 * COUNT for _, delivered in found.values())
