"""A limit binds clients of each library, and what they send as well as what they receive."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.greedy import BATCH, NAMES, READ, SENT, Clients
from tests.apache_kafka.limiting import end_of, look, passed, rules_of, topic_of
from tests.apache_kafka.test_attacks import PRODUCE, batch_of
from tests.playbooks_kafka.frames import ask
from tests.real.clients import wait_until
from tests.real.fixtures import StartGateway
from tests.real.gateways import HOST, Gateway
from tests.support.crowd import Crowd, Talk
from tests.support.store import StoreServer

pytestmark = pytest.mark.real

RATE = 200
SECONDS = 10
STORED = 100 * RATE
"""Messages that are more than are received on a slow machine."""

TOLERANCE = 0.01
"""What a burst is of what passes in this time, too."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreServer]:
    server = StoreServer(tmp_path)
    server.start()
    yield server
    server.stop()


def test_no_client_gets_more_than_a_limit_and_one_percent(
    kafka: Kafka, gateway: StartGateway, tmp_path: Path
) -> None:
    """All clients at a time, each of which takes what it gets: less, on a busy machine, which
    `make shaping` measures."""
    started = gateway(kafka, KafkaPlan(rules=rules_of(RATE, tmp_path)))
    direct, address = f"{BROKERS_HOST}:{kafka.port}", f"{HOST}:{started.port}"
    clients = Clients(kafka.jars, tmp_path)
    stored = {SENT: 0, READ: STORED}
    topics = {
        (kind, name): topic_of(kind, direct, stored[kind]) for kind in stored for name in NAMES
    }
    with ExitStack() as stack:
        for (kind, name), topic in topics.items():
            stack.enter_context(clients.at_work(kind, name, address, topic))
        first, last = passed(started, topics.values(), SECONDS)
    most = RATE * (last.ended - first.began) * (1 + TOLERANCE) + 2 * BATCH  # a frame
    found = {it: last.messages[of] - first.messages[of] for it, of in topics.items()}
    print(f"at most {most:.0f}: {found}")
    assert all(0 < it <= most for it in found.values()), found
    assert all(last.messages[it] < STORED for it in topics.values()), "there was no more"


CONNECTIONS, PAYLOAD = 20, bytes(10_000)
BYTES, LEAST_BURST = 100_000, 0.1
"""A limit: bytes in a second, and the seconds of it that may always pass at once."""


def test_many_connections_that_wait_for_nothing_store_no_more_than_their_principal_may(
    kafka: Kafka, gateway: StartGateway, tmp_path: Path
) -> None:
    limit = {"limit": {"publish": {"bytes": f"{BYTES}B/s"}}, "per": "principal"}
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"version": 1, "rules": [{"id": "all", "match": {}} | limit]}))
    identity = {"mode": "verify", "anonymous": {"principal": "crowd"}}
    started = gateway(kafka, KafkaPlan(identity, rules=rules))
    direct, batch = f"{BROKERS_HOST}:{kafka.port}", batch_of(PAYLOAD)
    topic = topic_of(SENT, direct)
    data = [{"Name": topic, "PartitionData": [{"Index": 0, "Records": batch}]}]
    frame = ask(PRODUCE, 9, 1, Acks=1, TimeoutMs=30_000, TopicData=data)
    began = time.monotonic()
    with Crowd(started.port, CONNECTIONS, Talk(len(batch), lambda _: frame)).at_work():
        time.sleep(SECONDS)
        stored = len(batch) * end_of(topic, direct)
        ended = time.monotonic()
    most = BYTES * (ended - began + LEAST_BURST) + len(batch)
    print(f"at most {most:.0f}: {stored}")
    assert 0 < stored <= most


# -- several gateways ----------------------------------------------------------------------------

CLIENTS = 4
"""Clients that send to one topic, each by a connection of its own."""

MOST = 5
"""How often clients are started until they are served by both workers, which is chance."""


@contextmanager
def _sending(clients: Clients, addresses: Sequence[str], topic: str) -> Iterator[None]:
    """Have clients of librdkafka send to one topic, in turn by each of these addresses."""
    with ExitStack() as stack:
        for number in range(CLIENTS):
            address = addresses[number % len(addresses)]
            stack.enter_context(clients.at_work(SENT, "librdkafka", address, topic))
        yield


def _is_exact(messages: float, seconds: float) -> bool:
    """Return whether no more passed than the limit and one percent, beside a frame of each client,
    and most of it: a busy machine takes less."""
    most = RATE * seconds * (1 + TOLERANCE) + CLIENTS * BATCH
    return RATE * SECONDS / 2 < messages <= most


def test_workers_share_a_limit(kafka: Kafka, gateway: StartGateway, tmp_path: Path) -> None:
    started = gateway(kafka, KafkaPlan(rules=rules_of(RATE, tmp_path), workers=2))
    clients = Clients(kafka.jars, tmp_path)
    for number in count(1):
        topic = topic_of(SENT, f"{BROKERS_HOST}:{kafka.port}")
        with _sending(clients, [f"{HOST}:{started.port}"], topic):
            first, last = passed(started, [topic], SECONDS)
        found = last.messages[topic] - first.messages[topic]
        wait_until(lambda: len(_served_long(started)) >= number * CLIENTS)  # noqa: B023
        served = _served_long(started)
        print(f"{found:.0f} in {SECONDS} s, connections by workers {served}")
        assert _is_exact(found, last.ended - first.began)
        if set(served) == {1, 2}:
            break
        assert number < MOST


def _served_long(started: Gateway) -> list[int]:
    """Return the worker of each connection that lasted for as long as a measurement."""
    events = map(json.loads, started.log.read_text().splitlines())
    ended = (it for it in events if it["event"] == "connection_ended")
    return [it["worker"] for it in ended if it["seconds"] >= SECONDS]


def test_replicas_share_a_limit(
    kafka: Kafka, gateway: StartGateway, store: StoreServer, tmp_path: Path
) -> None:
    more, rules = {"store": {"url": store.url}}, rules_of(RATE, tmp_path)
    started = [gateway(kafka, KafkaPlan(rules=rules, more=more)) for _ in range(2)]
    clients = Clients(kafka.jars, tmp_path)
    topic = topic_of(SENT, f"{BROKERS_HOST}:{kafka.port}")
    with _sending(clients, [f"{HOST}:{it.port}" for it in started], topic):
        before = [passed(it, [topic], 0)[0] for it in started]
        time.sleep(SECONDS)
        after = [look(it) for it in started]
    parts = [b.messages[topic] - a.messages[topic] for a, b in zip(before, after, strict=True)]
    print(f"{parts} in {SECONDS} s")
    assert _is_exact(sum(parts), after[-1].ended - before[0].began)
    assert min(parts) > 0
