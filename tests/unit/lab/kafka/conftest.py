"""A cluster of two brokers, with a topic that each leads a partition of."""

from __future__ import annotations

import pytest

from tests.unit.lab.kafka.playbook import Brokers, Client

TOPIC = "t"


@pytest.fixture
def brokers() -> Brokers:
    made = Brokers()
    made.cluster.create(TOPIC, 2, leaders=[1, 2])
    return made


@pytest.fixture
def client(brokers: Brokers) -> Client:
    """Return a connection to the first broker, which leads the first partition."""
    return brokers.client(1)
