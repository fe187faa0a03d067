"""How long clients wait is counted for each send, lookup, connection and first message."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.wire.stopwatch import PACE
from tests.real.clients import Client, Producer, fresh_topic, numbered, receive, send_all
from tests.real.fixtures import Connect, Reach, Route
from tests.real.gateways import Plan
from tests.real.metrics import settled_total
from tests.real.probes import figure

from .brokers import Brokers

pytestmark = [pytest.mark.gateway_only, pytest.mark.tier("all")]

RATE = 100
RULES = f"""
version: 1
rules:
  - id: slow
    match: {{topic: "held*"}}
    limit: {{publish: {{messages: {RATE}/s}}}}
"""


@pytest.fixture
def alone(brokers: Brokers, reach: Reach, tmp_path: Path) -> Route:
    """Return the route through a gateway that no other test uses."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    return reach(brokers, Plan(rules=rules))


def counted(route: Route, name: str, expected: float) -> float:
    assert route.gateway is not None
    return settled_total(route.gateway.metrics_url, expected, f"{name}_count", tenant="public")


def is_about(found: float, expected: float) -> bool:
    """Return whether a count from samples is right."""
    return expected / 2 < found < expected * 2


def send_calmly(producer: Producer, count: int) -> None:
    for payload in numbered(count):
        producer.send(payload)
        time.sleep(10 * PACE)


def average(route: Route, name: str) -> float:
    sums, counts = (figure(route.gateway, f"{name}_{it}") for it in ("sum", "count"))
    return sums / counts


def test_every_send_of_a_calm_client_is_timed(connect: Connect, alone: Route) -> None:
    client = connect(alone.url)
    producer = client.create_producer(fresh_topic(), batching_enabled=False)
    send_calmly(producer, 5)  # the chunks that opened the connection came fast
    before = figure(alone.gateway, "gateway_send_seconds_count")
    send_calmly(producer, 20)
    assert counted(alone, "gateway_send_seconds", before + 20) == before + 20


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_the_sends_of_a_busy_client_are_estimated(
    connect: Connect, alone: Route, batched: bool
) -> None:
    client, topic = connect(alone.url), fresh_topic()
    options = {"batching_enabled": batched, "block_if_queue_full": True}
    send_all(client.create_producer(topic, **options), numbered(20_000))
    frames = figure(alone.gateway, "gateway_topic_frames_total", topic=topic)
    assert is_about(figure(alone.gateway, "gateway_send_seconds_count"), frames)
    assert is_about(figure(alone.gateway, "gateway_send_own_seconds_count"), frames)


def test_the_wait_for_a_limit_is_the_gateways_own_part(connect: Connect, alone: Route) -> None:
    producer = connect(alone.url).create_producer(fresh_topic("held"), batching_enabled=False)
    send_all(producer, numbered(2 * RATE))
    assert is_about(figure(alone.gateway, "gateway_send_seconds_count"), 2 * RATE)
    # The last of these messages waits for nearly two seconds, the average one for nearly one.
    whole, own = average(alone, "gateway_send_seconds"), average(alone, "gateway_send_own_seconds")
    assert whole > 0.5
    assert own > whole / 4  # a sample, so it may be the larger one


def test_a_connection_and_a_lookup_are_timed(connect: Connect, alone: Route) -> None:
    client: Client = connect(alone.url)
    for _ in range(3):
        client.create_producer(fresh_topic())
    lookups = figure(alone.gateway, "gateway_lookups_total", outcome="connect")
    assert counted(alone, "gateway_lookup_seconds", lookups) == lookups >= 3
    accepted = figure(alone.gateway, "gateway_connections_accepted_total")
    assert figure(alone.gateway, "gateway_connect_seconds_count") == accepted >= 1


def test_the_first_message_of_a_subscription_is_timed(connect: Connect, alone: Route) -> None:
    client, topic = connect(alone.url), fresh_topic()
    consumer = client.subscribe(topic, "s")
    time.sleep(0.3)
    send_all(client.create_producer(topic), numbered(5))
    receive(consumer, 5)
    assert counted(alone, "gateway_first_message_seconds", 1) == 1
    assert figure(alone.gateway, "gateway_first_message_seconds_sum") > 0.3


def test_workers_are_timed_too(connect: Connect, brokers: Brokers, reach: Reach) -> None:
    route = reach(brokers, Plan(workers=2))
    send_calmly(connect(route.url).create_producer(fresh_topic()), 10)
    assert figure(route.gateway, "gateway_send_seconds_count", tenant="public") > 0
    accepted = figure(route.gateway, "gateway_connections_accepted_total")
    assert figure(route.gateway, "gateway_connect_seconds_count") == accepted
