"""Real clients where the order of frames decides: permits before SUCCESS, a close behind receipts.

With `ROUNDS=60` they measure how often each goes wrong, and with `--direct` as well.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.builders import go_client
from tests.clients.programs import Program

from .brokers.jars import Say
from .brokers.standalone import Standalone
from .clients import Client, fresh_topic, send_all, wait_until
from .fixtures import Reach, Route, or_skip
from .gateways import Plan

pytestmark = pytest.mark.long

RULES = """
version: 1
rules:
  - id: far-above
    match: {topic: "*"}
    limit: {dispatch: {messages: 100000/s}, publish: {messages: 100000/s}}
    per: topic
"""
"""Limits that nobody comes near: the gateway counts, and holds nothing back."""

ROUNDS = int(os.environ.get("ROUNDS", "0"))
UNLOADS = ROUNDS or 12
MESSAGES = 20
"""Of each unload."""
WORK_MS = 20
TERMINATIONS = ROUNDS or 6


@pytest.fixture(scope="module")
def go(say: Say) -> Program:
    return or_skip(go_client, say)


@pytest.fixture
def counted(pulsar: Standalone, reach: Reach, tmp_path: Path) -> Route:
    """By a gateway with rules, where there is a gateway."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    return reach(pulsar, Plan(rules=rules))


def test_a_consumer_that_asks_for_one_message_at_a_time_goes_on_through_unloads(
    pulsar: Standalone, go: Program, counted: Route, client: Client, logs: Path
) -> None:
    """It works on a message while its topic is unloaded, so that it asks for the next one before
    SUCCESS, and once more behind it. Topics are unloaded until it has everything."""
    topic = fresh_topic("one-at-a-time")
    count = UNLOADS * MESSAGES
    send_all(client.create_producer(topic), numbered_only(count))
    settings: dict[str, Any] = {"no_queue": True, "work_ms": WORK_MS}
    with go.consuming(counted.url, topic, "s", count, logs / "go", **settings) as running:
        running.await_ready()
        for _ in range(UNLOADS):
            time.sleep(MESSAGES * WORK_MS / 2000)
            pulsar.admin.unload(topic)
        assert running.received().received == frozenset(range(count))


def numbered_only(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_producer_hears_that_its_topic_is_terminated(
    pulsar: Standalone, go: Program, counted: Route, logs: Path
) -> None:
    """It always has one SEND on its way. The broker says CLOSE_PRODUCER, and then SEND_ERROR."""
    wrong: list[str] = []
    for number in range(TERMINATIONS):
        topic = fresh_topic("terminated")
        log = logs / f"go-{number}"
        with go.producing(counted.url, topic, 0, log, each=True, patience=5) as running:
            running.await_ready()
            wait_until(lambda topic=topic: _stored(pulsar, topic) > 20)  # type: ignore[misc]
            pulsar.admin.terminate(topic)
            errors = running.sent().errors
        if not any("TopicTerminated" in error for error in errors):
            wrong.append(f"{number}: {errors}")
    assert not wrong, f"{len(wrong)} of {TERMINATIONS}"


def _stored(pulsar: Standalone, topic: str) -> int:
    return int(pulsar.admin.stats(topic)["msgInCounter"])
