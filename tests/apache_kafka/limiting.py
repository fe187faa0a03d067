"""Limits of each topic, and how much passes by them: topics `sent…` have one of what is sent to
them, `read…` one of what is received."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.greedy import PAYLOAD, READ, SENT, batches
from tests.apache_kafka.working import PATIENCE_S
from tests.real.clients import wait_until
from tests.real.gateways import Gateway
from tests.real.metrics import totals

ACTIONS = {SENT: "publish", READ: "dispatch"}
FIGURE = "gateway_topic_messages_total"

WARM = 300
"""Messages by which a burst is used up, of at most 2,000 a second."""


def rules_of(rate: float, folder: Path) -> Path:
    """Return a file of rules that allow so many messages a second."""
    rules: list[Mapping[str, Any]] = [
        {
            "id": kind,
            "match": {"topic": f"{kind}*"},
            "limit": {action: {"messages": f"{rate:.0f}/s"}},
            "per": "topic",
        }
        for kind, action in ACTIONS.items()
    ]
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "rules": rules}))
    return path


def topic_of(kind: str, broker: str, messages: int = 0) -> str:
    """Create a topic of one partition and return its name. `broker`: its address; `messages`: how
    many are stored there, in small batches."""
    name = f"{kind}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
    producer = batches(broker, name)
    for _ in range(messages):
        producer.produce(name, PAYLOAD)
    assert producer.flush(PATIENCE_S) == 0
    return name


def end_of(topic: str, broker: str) -> int:
    """Return how many messages were ever stored in a topic of one partition. `broker`: its
    address."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "looks"})
    try:
        found: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)[1]
    finally:
        consumer.close()
    return found


class Look(NamedTuple):
    """How many messages of each topic had passed, at some moment between two."""

    began: float
    ended: float
    messages: Mapping[str, float]


def passed(gateway: Gateway, topics: Iterable[str], seconds: float) -> tuple[Look, Look]:
    """Return two looks so many seconds apart, once messages of each topic have passed for a
    while."""
    wait_until(
        lambda: all(look(gateway).messages.get(it, 0) > WARM for it in topics), 2 * PATIENCE_S
    )
    first = look(gateway)
    time.sleep(seconds)
    return first, look(gateway)


def look(gateway: Gateway) -> Look:
    """Ask the gateway."""
    began = time.monotonic()
    told = gateway.ask("metrics/topics")[1]
    ended = time.monotonic()
    found = totals(told, FIGURE, "topic")
    return Look(began, ended, {topic: count for (topic,), count in found.items()})
