"""Limits of what producers send, with a real client: messages are held, not lost, and no other
client notices."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.clients.programs import Program
from tests.real.clients import (
    Client,
    assert_silent,
    fresh_topic,
    numbered,
    payloads,
    receive,
    receive_until_silent,
    wait_until,
)
from tests.real.fixtures import Connect, Reach, Route, StartGateway, Tapped
from tests.real.gateways import Plan
from tests.real.probes import figure

from .brokers import REAL, Brokers
from .rolled import in_front_of

pytestmark = [pytest.mark.gateway_only, pytest.mark.tier("all")]

RULES = """
version: 1
rules:
  - id: few
    match: {{topic: "limited*"}}
    limit: {{publish: {{messages: {rate}/s}}}}
    burst: 1
    per: topic
"""
BOTH_WAYS = """
version: 1
rules:
  - id: few
    match: {topic: "limited*"}
    limit: {publish: {messages: 60/s}, dispatch: {messages: 50/s}}
    per: topic
"""
RATE = 40
AT_ONCE = 1 + 0.1 * RATE + 1
"""Messages that may pass at once: the smallest burst of a limit, and one message."""

Limited = Callable[..., Route]


@pytest.fixture
def limited(brokers: Brokers, reach: Reach, tmp_path: Path) -> Limited:
    """Start gateways that limit topics whose name begins with `limited`."""

    def start(rate: int = RATE, **settings: Any) -> Route:
        rules = tmp_path / "rules.yaml"
        rules.write_text(RULES.format(rate=rate))
        return reach(brokers, Plan(rules=rules, **settings))

    return start


class Sending:
    """Numbered messages that are sent at once; counts their receipts."""

    def __init__(self, client: Client, topic: str, count: int, size: int = 10) -> None:
        self.acknowledged = 0
        self.failed: list[str] = []
        self.payloads = [payload.ljust(size) for payload in numbered(count)]
        self._producer = client.create_producer(topic, batching_enabled=False)
        self._began = time.monotonic()
        for payload in self.payloads:
            self._producer.send_async(payload, self._answered)

    def _answered(self, result: object, _: object) -> None:
        if result == pulsar.Result.Ok:
            self.acknowledged += 1
        else:
            self.failed.append(str(result))

    def ends(self) -> float:
        """Return the seconds until all messages had their receipts."""
        self._producer.flush()
        return time.monotonic() - self._began


def test_messages_above_a_limit_pass_at_its_rate_in_order(
    connect: Connect, limited: Limited
) -> None:
    route = limited()
    client, topic = connect(route.url), fresh_topic("limited")
    consumer = client.subscribe(topic, "s")
    sending = Sending(client, topic, 3 * RATE)
    seconds = sending.ends()
    assert payloads(receive(consumer, 3 * RATE)) == sending.payloads
    assert sending.failed == []
    assert RATE * seconds + AT_ONCE >= 3 * RATE
    assert figure(route.gateway, "gateway_rule_wait_seconds_total", rule="few") > 1
    assert figure(route.gateway, "gateway_producer_resets_total") == 0
    wait_until(lambda: figure(route.gateway, "gateway_held_bytes") == 0)


def test_another_producer_of_the_connection_does_not_wait(
    connect: Connect, limited: Limited
) -> None:
    client = connect(limited(rate=20).url)
    held = Sending(client, fresh_topic("limited"), 100)
    free = Sending(client, fresh_topic(), 1000)
    free.ends()
    assert free.acknowledged == 1000
    assert held.acknowledged < 100
    held.ends()
    assert (held.acknowledged, held.failed, free.failed) == (100, [], [])


def test_a_producer_that_is_held_too_long_loses_and_doubles_nothing(
    connect: Connect, limited: Limited
) -> None:
    route = limited(rate=10, deadlines={"held": "1s"})
    client, topic = connect(route.url), fresh_topic("limited")
    consumer = client.subscribe(topic, "s")
    sending = Sending(client, topic, 40)
    seconds = sending.ends()
    assert payloads(receive(consumer, 40)) == sending.payloads
    assert_silent(consumer)
    assert sending.failed == []
    assert 10 * seconds + AT_ONCE >= 40
    assert figure(route.gateway, "gateway_producer_resets_total") > 1
    assert figure(route.gateway, "gateway_connections_ended_total") == 0


def test_a_producer_with_too_much_waiting_loses_and_doubles_nothing(
    connect: Connect, limited: Limited
) -> None:
    route = limited(limits={"held": "64KiB", "buffered": "32MiB"})
    client, topic = connect(route.url), fresh_topic("limited")
    consumer = client.subscribe(topic, "s")
    sending = Sending(client, topic, 60, size=4000)
    sending.ends()
    assert payloads(receive(consumer, 60)) == sending.payloads
    assert_silent(consumer)
    assert sending.failed == []
    assert figure(route.gateway, "gateway_producer_resets_total") > 0
    assert figure(route.gateway, "gateway_connections_ended_total") == 0


def test_a_producer_moves_while_its_messages_wait(
    connect: Connect, brokers: Brokers, gateway: StartGateway, tapped: Tapped, tmp_path: Path
) -> None:
    """So does its consumer, whose permits wait."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(BOTH_WAYS)
    with in_front_of(brokers, gateway, tapped, tmp_path, rules=rules) as rolled:
        client, topic = connect(rolled.url), fresh_topic("limited")
        consumer = client.subscribe(topic, "s")
        sending = Sending(client, topic, 300)
        rolled.roll()
        sending.ends()
        received = receive_until_silent(consumer, 3000)
    assert sending.failed == []
    assert list(dict.fromkeys(payloads(received))) == sending.payloads
    places = {
        (it.data(), it.message_id().entry_id(), it.message_id().ledger_id()) for it in received
    }
    assert len(places) == 300, "stored twice"


def test_a_producer_may_be_closed_while_its_messages_wait(
    connect: Connect, limited: Limited
) -> None:
    route = limited()
    client, topic = connect(route.url), fresh_topic("limited")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    for payload in numbered(RATE):
        producer.send_async(payload, None)
    producer.close()
    assert payloads(receive(consumer, RATE)) == numbered(RATE)
    again = client.create_producer(topic)
    again.send(b"again")
    assert payloads(receive(consumer, 1)) == [b"again"]


OVERFLOWS = """
version: 1
rules:
  - id: few
    match: {topic: "limited*"}
    limit: {publish: {messages: 20/s}}
    burst: 1
    on_overflow: reject
"""


@REAL
@pytest.mark.real
@pytest.mark.parametrize("built_program", ["java"], indirect=True)
@pytest.mark.parametrize("batch", [False, True], ids=["single", "batched"])
def test_java_gets_refusals_of_an_overflow_in_order(
    program: Program, brokers: Brokers, reach: Reach, tmp_path: Path, logs: Path, batch: bool
) -> None:
    """Java would close the connection at any other order."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(OVERFLOWS)
    route, topic = reach(brokers, Plan(rules=rules)), fresh_topic("limited")
    with program.consuming(route.url, topic, "s", 0, logs / "c.log") as consumer:
        consumer.await_ready()
        pace = 5 if batch else 0  # enough for several batches
        with program.producing(
            route.url, topic, 600, logs / "p.log", batch=batch, interval_ms=pace
        ) as producer:
            sent = producer.sent()
        consumer.tell_to_stop()
        received = consumer.received()
    assert 0 < len(sent.acknowledged) < 600
    assert sent.errors
    assert all("waits already" in error for error in sent.errors)
    assert received.received == sent.acknowledged
    assert (received.stored_twice, received.out_of_order) == (0, 0)
    assert figure(route.gateway, "gateway_producer_resets_total") == 0
    assert figure(route.gateway, "gateway_held_bytes") == 0
