"""Topics that are not persistent: their brokers drop what comes while a consumer has no permits, so
whatever is held back or late loses messages that arrive directly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.real.clients import (
    Client,
    fresh_topic,
    numbered,
    payloads,
    receive,
    receive_until_silent,
)
from tests.real.fixtures import Connect, Reach, Route
from tests.real.gateways import Plan

from .brokers import Brokers

RULES = """
version: 1
rules:
  - id: wide
    limit: {dispatch: {messages: 100000/s, bytes: 100MB/s}, publish: {messages: 100000/s}}
    per: topic
  - id: slow
    match: {topic: "slow*"}
    limit: {publish: {messages: 50/s}}
    per: topic
    override: true
"""
BURST, ROUNDS = 30, 5
MANY, EACH = 500, 0.0005
"""Messages, and seconds between two of them."""


def unkept(kind: str = "t") -> str:
    """Return the name of a new topic."""
    return f"non-{fresh_topic(kind)}"


def send(client: Client, topic: str, count: int, pause: float = 0.0, **options: Any) -> None:
    """Send numbered messages; return when the broker has answered all."""
    producer = client.create_producer(topic, batching_enabled=False, **options)
    for payload in numbered(count):
        producer.send_async(payload, None)
        if pause:
            time.sleep(pause)
    producer.flush()
    producer.close()


def arrive(client: Client, count: int, pause: float = 0.0, consumers: int = 1) -> bool:
    """Return whether all of some messages come to all consumers of a new topic, in one of some
    trials: a broker on a busy machine drops one now and then, directly too."""
    for _ in range(ROUNDS):
        topic = unkept()
        subscribed = [client.subscribe(topic, f"s-{it}") for it in range(consumers)]
        send(client, topic, count, pause)
        found = [payloads(receive_until_silent(it)) for it in subscribed]
        for it in subscribed:
            it.close()
        if found == [numbered(count)] * consumers:
            return True
    return False


def test_messages_arrive_whether_they_come_at_once_or_in_turn(client: Client) -> None:
    assert arrive(client, BURST)
    assert arrive(client, MANY, EACH)


def test_large_messages_arrive(client: Client) -> None:
    topic = unkept()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    for _ in range(ROUNDS):
        producer.send(bytes(1_000_000))
    assert [len(it) for it in payloads(receive(consumer, ROUNDS))] == [1_000_000] * ROUNDS


@pytest.fixture(params=["pass", "verify"])
def limited(
    brokers: Brokers, reach: Reach, tmp_path: Path, request: pytest.FixtureRequest
) -> Route:
    """Return the route by a gateway with limits that nobody reaches, and with checksums verified or
    not."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    return reach(brokers, Plan(rules=rules, checksums=request.param))


@pytest.mark.gateway_only
def test_below_a_limit_nothing_is_lost(connect: Connect, limited: Route) -> None:
    client = connect(limited.url)
    assert arrive(client, BURST, consumers=2)
    assert arrive(client, MANY, EACH, consumers=2)


@pytest.mark.gateway_only
def test_what_waits_for_a_limit_of_its_producer_is_not_lost(
    connect: Connect, limited: Route
) -> None:
    client, topic = connect(limited.url), unkept("slow")
    consumer = client.subscribe(topic, "s")
    send(client, topic, BURST)
    assert payloads(receive(consumer, BURST)) == numbered(BURST)
