"""The Go and the Java client work through the gateway as without it.

They use real brokers. One test with keys and partitions shows that the sandbox serves them too;
Python clients use the rest of the sandbox in the other files of this folder.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import PACKINGS, Program, Received, Sent
from tests.real.brokers.tokens import Authority
from tests.real.clients import fresh_topic, wait_until
from tests.real.configurations import Configuration, ReachConfigured
from tests.real.fixtures import GATEWAY, GatewayOfMode, Reach, Route
from tests.real.traffic import disturbed

from .brokers import REAL, Brokers, Secured
from .clusters import Pair, Redirecting

# Go builds the programs, or Java runs them.
pytestmark = [pytest.mark.real, pytest.mark.tier("all")]

COUNT = 800
SECONDS = 1.5
PACE_MS = 2
"""Makes the messages take a little longer than the disturbance of their topic."""
WORKED, WORK_MS = 40, 60
"""Messages of a slow consumer, and its time for each: in all about as long as a broker takes to
reopen it."""
UNLOADS = 8


@pytest.fixture
def program(program: Program, configuration: Configuration) -> Program:
    """Return the program with the token of its configuration."""
    return replace(program, token=configuration.token)


@REAL
@pytest.mark.parametrize("batch", [False, True], ids=["single", "batched"])
def test_messages_arrive_in_order(program: Program, route: Route, logs: Path, batch: bool) -> None:
    assert_exact(*exchange(program, route.url, fresh_topic(), logs, batch=batch))


def test_partitions_keep_the_order_of_keys(
    program: Program, route: Route, brokers: Brokers, logs: Path
) -> None:
    topic = fresh_topic("p")
    brokers.create_partitioned(topic, 4)
    assert_exact(*exchange(program, route.url, topic, logs, key=True))


@REAL
@pytest.mark.parametrize("kind", ["shared", "key_shared"])
def test_consumers_divide_the_messages(
    program: Program, route: Route, brokers: Brokers, logs: Path, kind: str
) -> None:
    topic = fresh_topic()
    with (
        program.consuming(route.url, topic, "s", 0, logs / "one.log", kind=kind) as one,
        program.consuming(route.url, topic, "s", 0, logs / "other.log", kind=kind) as other,
    ):
        one.await_ready()
        other.await_ready()
        with program.producing(route.url, topic, COUNT, logs / "p.log", key=True) as producer:
            assert producer.sent().acknowledged == set(range(COUNT))
        wait_until(lambda: brokers.backlog(topic, "s") == 0)
        for consumer in (one, other):
            consumer.tell_to_stop()
        first, second = one.received(), other.received()
    assert not first.received & second.received
    assert first.received | second.received == set(range(COUNT))
    assert first.received
    assert second.received


@pytest.mark.parametrize("redirecting", ["modular"], indirect=True)
@pytest.mark.timing
def test_nothing_is_lost_when_partitions_are_unloaded(
    program: Program, redirecting: Pair, reach_configured: ReachConfigured, logs: Path
) -> None:
    """Clients look all of them up again, through redirects."""
    route, topic = reach_configured(redirecting), redirecting.unassigned_topic(3)
    assert_survives_moves(program, route, topic, logs)


@pytest.mark.parametrize("assigning", ["extensible"], indirect=True)
@pytest.mark.timing
def test_nothing_is_lost_when_a_topic_moves(
    program: Program, assigning: Pair, reach_configured: ReachConfigured, logs: Path
) -> None:
    """Clients are told the topic's new broker."""
    route, topic = reach_configured(assigning), assigning.unassigned_topic()
    assert_survives_moves(program, route, topic, logs)


def assert_survives_moves(program: Program, route: Route, topic: str, logs: Path) -> None:
    pair: Pair = route.broker
    with (
        program.consuming(route.url, topic, "s", COUNT, logs / "c.log", stay=True) as consumer,
        program.producing(
            route.url, topic, COUNT, logs / "p.log", interval_ms=PACE_MS, key=True
        ) as producer,
    ):
        for running in (consumer, producer):
            running.await_ready()
        with disturbed(lambda: pair.move(topic), SECONDS):
            sent = producer.sent()
        # A broker answers a consumer that closes while its topic moves with an error.
        consumer.await_complete()
        consumer.tell_to_stop()
        received = consumer.received()
    assert_nothing_is_lost(sent, received)
    # While a namespace is unloaded, a broker may store messages without receipts: the client sends
    # them again, on a direct connection too.
    assert received.stored_twice == 0 or isinstance(pair, Redirecting)


@REAL
@pytest.mark.timing
def test_a_consumer_without_a_queue_goes_on_after_unloads(
    program: Program, route: Route, brokers: Brokers, logs: Path
) -> None:
    """It may ask for its next message while it is being reopened. The broker ignores that permit,
    and the consumer asks again."""
    topic, seconds = fresh_topic(), WORKED * WORK_MS / 1000
    with (
        program.consuming(
            route.url, topic, "s", WORKED, logs / "c.log", queue=0, work_ms=WORK_MS, stay=True
        ) as consumer,
        program.producing(route.url, topic, WORKED, logs / "p.log") as producer,
    ):
        for running in (consumer, producer):
            running.await_ready()
        assert producer.sent().acknowledged == set(range(WORKED))
        for _ in range(UNLOADS):
            time.sleep(seconds / UNLOADS)
            brokers.unload(topic)
        consumer.await_complete()
        consumer.tell_to_stop()
        assert consumer.received().received == set(range(WORKED))


@REAL
def test_a_client_that_is_told_to_stop_gets_its_receipts(
    program: Program, route: Route, logs: Path
) -> None:
    topic = fresh_topic()
    with program.producing(route.url, topic, 0, logs / "p.log", interval_ms=1) as producer:
        with program.consuming(route.url, topic, "s", 10, logs / "c.log") as consumer:
            assert consumer.received().received >= set(range(10))
        producer.tell_to_stop()
        sent = producer.sent()
    assert sent.errors == ()
    assert sent.acknowledged == set(range(len(sent.acknowledged)))


@pytest.mark.parametrize("secured", ["pulsar_auth"], indirect=True)
def test_a_client_sends_its_token(
    program: Program,
    secured: Secured,
    gateway_of_mode: GatewayOfMode,
    reach: Reach,
    way: str,
    authority: Authority,
    logs: Path,
) -> None:
    through = gateway_of_mode(secured, "verify") if way == GATEWAY else None
    url, topic = reach(secured, through=through).url, secured.topic_for("alice", "proxy")
    token = authority.token("alice")
    with (
        program.consuming(url, topic, "s", 10, logs / "c.log", token=token) as consumer,
        program.producing(url, topic, 10, logs / "p.log", token=token) as producer,
    ):
        assert producer.sent().acknowledged == consumer.received().received == set(range(10))


FEW = [0, 1, 2, 3]
CHUNKED_FACTOR = 2.5
"""Messages are larger than the broker's limit by this factor: three chunks each."""


@REAL
@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("chunks", {"whole": FEW}),
        ("json", {"records": FEW}),
        ("avro", {"records": FEW}),
        ("list", {"topics": FEW}),
        ("pattern", {"topics": FEW}),
        ("read", {"earliest": FEW, "behind": FEW[2:]}),
        ("seek", {"first": FEW, "by_time": FEW, "by_id": FEW[3:]}),
        ("table", {"before": FEW, "after": [number + len(FEW) for number in FEW]}),
        ("packed", dict.fromkeys(PACKINGS, FEW)),
    ],
)
def test_further_client_features(
    program: Program,
    route: Route,
    brokers: Brokers,
    logs: Path,
    verb: str,
    expected: dict[str, list[int]],
) -> None:
    """Messages in chunks; records with schemas; several topics as one, by a list and by a pattern;
    readers from the oldest message and from behind another, to the end; seeks back; table views;
    all ways to pack messages."""
    size = int(CHUNKED_FACTOR * brokers.max_message_size)
    seen = program.tried(route.url, verb, fresh_topic(), len(FEW), logs / "client.log", size)
    assert seen == expected


def exchange(
    program: Program,
    url: str,
    topic: str,
    logs: Path,
    **how: Any,
) -> tuple[Sent, Received]:
    """Produce with one client and consume with another of its kind, and return both reports."""
    with (
        program.consuming(url, topic, "s", COUNT, logs / "consumer.log") as consumer,
        program.producing(url, topic, COUNT, logs / "producer.log", **how) as producer,
    ):
        for running in (consumer, producer):
            running.await_ready()
        return producer.sent(), consumer.received()


def assert_exact(sent: Sent, received: Received) -> None:
    assert_nothing_is_lost(sent, received)
    assert (received.redelivered, received.stored_twice) == (0, 0)


def assert_nothing_is_lost(sent: Sent, received: Received) -> None:
    """Assert that every message is acknowledged, and that every acknowledged message arrived, in
    order."""
    assert sent.errors == ()
    assert sent.acknowledged == received.received == set(range(COUNT))
    assert (received.errors, received.out_of_order) == ((), 0)
