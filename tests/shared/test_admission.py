"""Limits of the rate of lookups, connections and openings, and of their number, with a real client.
The client waits or retries; only an exhausted number makes a call fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pulsar  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.clients.programs import Program
from tests.real import probes
from tests.real.clients import (
    Client,
    fresh_topic,
    numbered,
    payloads,
    receive,
    send_all,
    wait_until,
)
from tests.real.fixtures import Connect, Reach, Route
from tests.real.gateways import Plan
from tests.real.metrics import scrape, total

from .brokers import REAL, Brokers

pytestmark = [pytest.mark.gateway_only, pytest.mark.tier("all")]

RULES = """
version: 1
rules:
  - {{id: few, limit: {{{limit}}}{more}}}
"""

Limited = Callable[..., Route]


@pytest.fixture
def limited(brokers: Brokers, reach: Reach, tmp_path: Path) -> Limited:
    """Start gateways with one rule: this limit, and further settings of the rule."""

    def start(limit: str, more: str = "") -> Route:
        rules = tmp_path / "rules.yaml"
        rules.write_text(RULES.format(limit=limit, more=more and f", {more}"))
        return reach(brokers, Plan(rules=rules))

    return start


def figure(route: Route, name: str) -> float:
    """Return one of the rule's metrics."""
    return probes.figure(route.gateway, f"gateway_rule_{name}", rule="few")


@pytest.fixture
def partitioned(brokers: Brokers) -> Callable[[int], str]:
    def make(partitions: int) -> str:
        topic = fresh_topic("p")
        brokers.create_partitioned(topic, partitions)
        return topic

    return make


def timed(opens: Callable[[], object]) -> float:
    began = time.monotonic()
    opens()
    return time.monotonic() - began


def test_a_hundred_producers_are_opened_one_after_the_other(
    connect: Connect, limited: Limited, partitioned: Callable[[int], str]
) -> None:
    """The client requests all of them at once, as it does for a topic's partitions."""
    route = limited("producer_creations: 20/s")
    client, topic = connect(route.url), partitioned(100)
    seconds = timed(lambda: send_all(client.create_producer(topic), numbered(100)))
    print(f"100 producers at 20/s: {seconds:.1f} s")
    assert figure(route, "refused_total") == 0
    assert 0 < figure(route, "waits_total") <= 80, "a burst does not wait"


def test_consumers_are_opened_one_after_the_other(
    connect: Connect, limited: Limited, partitioned: Callable[[int], str]
) -> None:
    route = limited("consumer_creations: 20/s", "burst: 1")
    client, topic = connect(route.url), partitioned(40)
    seconds = timed(lambda: client.subscribe(topic, "s"))
    print(f"40 consumers at 20/s: {seconds:.1f} s")
    assert figure(route, "refused_total") == 0
    assert figure(route, "waits_total") > 0


def test_consumers_that_would_wait_too_long_retry(
    connect: Connect, limited: Limited, partitioned: Callable[[int], str]
) -> None:
    route = limited("consumer_creations: 8/s", "burst: 1")
    client, topic = connect(route.url, patience=30), partitioned(60)
    seconds = timed(lambda: client.subscribe(topic, "s"))
    print(f"60 consumers at 8/s: {seconds:.1f} s")
    assert figure(route, "refused_total") > 0


def test_a_consumer_that_is_refused_at_reopening_loses_nothing(
    connect: Connect, limited: Limited, brokers: Brokers
) -> None:
    route = limited("consumer_creations: 6/m", "burst: 1")
    client, topic = connect(route.url), fresh_topic()
    consumer = client.subscribe(topic, "s")
    brokers.unload(topic)
    send_all(client.create_producer(topic), numbered(3))
    assert payloads(receive(consumer, 3)) == numbered(3)
    assert figure(route, "refused_total") > 0


def test_a_producer_that_is_refused_at_reopening_loses_nothing(
    connect: Connect, limited: Limited, brokers: Brokers
) -> None:
    route = limited("producer_creations: 6/m", "burst: 1")
    topic = fresh_topic()
    client = connect(route.url)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    brokers.unload(topic)
    send_all(producer, numbered(3))
    assert payloads(receive(consumer, 3)) == numbered(3)
    assert figure(route, "refused_total") > 0


def test_a_client_that_gives_up_leaves_nothing_open(
    connect: Connect, limited: Limited, partitioned: Callable[[int], str]
) -> None:
    """The client closes what was opened for it, and what is opened after its timeout."""
    route = limited("producer_creations: 1/s", "burst: 1")
    client, topic = connect(route.url, patience=1), partitioned(4)
    with pytest.raises(pulsar.Timeout):
        client.create_producer(topic)
    assert route.gateway is not None
    url = route.gateway.metrics_url
    wait_until(lambda: total(scrape(url), "gateway_rule_waiting", rule="few") == 0)
    wait_until(lambda: total(scrape(url), "gateway_topic_producers") == 0)


def test_lookups_above_a_limit_are_retried(
    connect: Connect, limited: Limited, partitioned: Callable[[int], str]
) -> None:
    """More lookups arrive than may wait; the gateway refuses the rest, and the client retries."""
    route = limited("lookups: 10/s", "burst: 1")
    client, topic = connect(route.url, patience=30), partitioned(60)
    seconds = timed(lambda: send_all(client.create_producer(topic), numbered(60)))
    print(f"61 lookups at 10/s: {seconds:.1f} s")
    assert figure(route, "refused_total") > 0
    assert figure(route, "waits_total") > 0


def test_connections_above_a_limit_are_retried(connect: Connect, limited: Limited) -> None:
    route = limited("connects: 2/s", "burst: 1")
    topic = fresh_topic()
    began = time.monotonic()
    for _ in range(5):
        opens(connect(route.url, patience=30), topic)
    seconds = time.monotonic() - began
    print(f"10 connections at 2/s: {seconds:.1f} s")
    assert figure(route, "waits_total") > 0


def opens(client: Client, topic: str) -> None:
    send_all(client.create_producer(topic), numbered(1))


PARTITIONS = 30


@REAL
@pytest.mark.real
@pytest.mark.parametrize(
    "limit",
    ["lookups: 40/s", "connects: 30/m", "producer_creations: 10/s", "consumer_creations: 10/s"],
)
def test_go_and_java_clients_wait(
    program: Program, limited: Limited, partitioned: Callable[[int], str], logs: Path, limit: str
) -> None:
    route = limited(limit, "burst: 1")
    exchange(program, route, partitioned(PARTITIONS), logs, limit)
    assert figure(route, "waits_total") > 0
    assert figure(route, "refused_total") == 0


@REAL
@pytest.mark.real
@pytest.mark.parametrize(
    "limit",
    ["lookups: 8/s", "connects: 12/m", "producer_creations: 4/s", "consumer_creations: 4/s"],
)
def test_go_and_java_clients_retry(
    program: Program, limited: Limited, partitioned: Callable[[int], str], logs: Path, limit: str
) -> None:
    if program.name == "go" and "lookups" not in limit:
        pytest.skip("what it opens fails where it is refused, whatever the error is")
    route = limited(limit, "burst: 1")
    exchange(program, route, partitioned(PARTITIONS), logs, limit)
    assert figure(route, "refused_total") > 0


@REAL
@pytest.mark.real
def test_go_and_java_clients_that_are_refused_at_reopening_lose_nothing(
    program: Program, limited: Limited, brokers: Brokers, logs: Path
) -> None:
    route = limited("producer_creations: 6/m, consumer_creations: 6/m", "burst: 1s")
    topic, numbers = fresh_topic(), set(range(200))
    with (
        program.consuming(route.url, topic, "s", len(numbers), logs / "consumer.log") as consumer,
        program.producing(
            route.url, topic, len(numbers), logs / "p.log", interval_ms=5
        ) as producer,
    ):
        consumer.await_ready()
        producer.await_ready()
        brokers.unload(topic)
        sent, received = producer.sent(), consumer.received()
    assert sent.errors == received.errors == ()
    assert sent.acknowledged == received.received == numbers
    assert figure(route, "refused_total") > 0


def exchange(program: Program, route: Route, topic: str, logs: Path, limit: str) -> None:
    """Send a message for each partition from a producer to a consumer. They connect in turn, each
    twice: so a connection waits for one other at most, however slowly a program starts."""
    began = time.monotonic()
    with program.consuming(route.url, topic, "s", PARTITIONS, logs / "consumer.log") as consumer:
        consumer.await_ready()
        with program.producing(route.url, topic, PARTITIONS, logs / "p.log", key=True) as producer:
            sent, received = producer.sent(), consumer.received()
    print(f"{program.name} with {limit}: {time.monotonic() - began:.1f} s")
    assert sent.errors == received.errors == ()
    assert sent.acknowledged == received.received == set(range(PARTITIONS))


def test_openings_above_a_number_are_refused_until_one_closes(
    connect: Connect, limited: Limited
) -> None:
    route = limited("producers: 2, consumers: 1", "per: topic")
    client, topic = connect(route.url), fresh_topic()
    first, _ = client.create_producer(topic), client.create_producer(topic)
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(topic)
    client.create_producer(fresh_topic())
    first.close()
    send_all(client.create_producer(topic), numbered(3))
    client.subscribe(topic, "s")
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "other")
    assert figure(route, "refused_total") == 2


def test_a_closed_client_no_longer_counts(connect: Connect, limited: Limited) -> None:
    route = limited("producers: 1")
    topic = fresh_topic()
    for _ in range(3):
        client = connect(route.url)
        opens(client, topic)
        client.close()


def test_a_limit_without_room_rejects_a_producer(connect: Connect, limited: Limited) -> None:
    route = limited("publish: {messages: 10/s}", "action: reject")
    client, topic = connect(route.url), fresh_topic()
    busy = client.create_producer(topic, batching_enabled=False)
    receipts: list[object] = []
    for payload in numbered(30):
        busy.send_async(payload, lambda result, _: receipts.append(result))
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(fresh_topic())
    busy.flush()
    assert receipts == [pulsar.Result.Ok] * 30, "this producer is held, as by any other rule"


def test_a_shadow_rule_refuses_nothing(connect: Connect, limited: Limited) -> None:
    route = limited("producers: 1, producer_creations: 1/s", "mode: shadow, burst: 1")
    client = connect(route.url)
    for _ in range(3):
        client.create_producer(fresh_topic())
    assert figure(route, "refused_total") == 2
    assert figure(route, "waits_total") == 0
    assert figure(route, "shadow_held_total") > 0
