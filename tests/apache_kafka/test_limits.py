"""A limit binds clients of each library, and what they send as well as what they receive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.greedy import BATCH, NAMES, READ, SENT, Clients
from tests.apache_kafka.limiting import passed, rules_of, topic_of
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import HOST

pytestmark = pytest.mark.real

RATE = 200
SECONDS = 10
STORED = 100 * RATE
"""Messages that are more than are received on a slow machine."""

TOLERANCE = 0.01
"""What a burst is of what passes in this time, too."""


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    made = or_skip(lambda say: Kafka(artifacts.directory("kafka-limits"), say), say)
    made.start()
    yield made
    made.stop()


def test_no_client_gets_more_than_a_limit_and_one_percent(
    broker: Kafka, gateway: StartGateway, tmp_path: Path
) -> None:
    """All clients at a time, each of which takes what it gets: less, on a busy machine, which
    `make shaping` measures."""
    started = gateway(broker, KafkaPlan(rules=rules_of(RATE, tmp_path)))
    direct, address = f"{BROKERS_HOST}:{broker.port}", f"{HOST}:{started.port}"
    clients = Clients(broker.jars, tmp_path)
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
