"""Limits hold, and what they hold back is not lost."""

from __future__ import annotations

import time

import pytest

from tests.real.clients import EARLIEST, fresh_topic, numbered, payloads, receive, send_all
from tests.real.fixtures import Route
from tests.real.probes import figure

from .conftest import ClientOf

pytestmark = pytest.mark.gateway_only

RATE = 40
"""Messages a second, of both limits."""
MANY = 2 * RATE
AT_ONCE = 10
"""Messages that may pass at once: the burst, and what is taken or requested in advance."""


def waited(route: Route, rule: str) -> float:
    return figure(route.gateway, "gateway_rule_wait_seconds_total", rule=rule)


def test_messages_above_a_publish_limit_wait_and_none_is_lost(
    verified: Route, client_of: ClientOf, namespace: str
) -> None:
    client, topic = client_of("alice"), fresh_topic("few", namespace)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    began = time.monotonic()
    send_all(producer, numbered(MANY))
    seconds = time.monotonic() - began
    assert payloads(receive(consumer, MANY)) == numbered(MANY)
    assert RATE * seconds + AT_ONCE >= MANY
    assert waited(verified, "few") > 0


def test_messages_above_a_dispatch_limit_wait_and_none_is_lost(
    verified: Route, client_of: ClientOf, namespace: str
) -> None:
    client, topic = client_of("alice"), fresh_topic("slow", namespace)
    send_all(client.create_producer(topic, batching_enabled=False), numbered(MANY))
    began = time.monotonic()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert payloads(receive(consumer, MANY)) == numbered(MANY)
    assert RATE * (time.monotonic() - began) + AT_ONCE >= MANY
    assert waited(verified, "slow") > 0
