"""A cluster of two brokers, the first of which owns the usual topic."""

from __future__ import annotations

import pytest

from gateway.lab.sandbox.cluster import SandboxCluster
from gateway.lab.sandbox.names import parse_topic
from tests.unit.lab.sandbox.playbook import TOPIC, URLS, Client


@pytest.fixture
def cluster() -> SandboxCluster:
    cluster = SandboxCluster(URLS)
    name = parse_topic(TOPIC)
    assert name is not None
    topic = cluster.topic(name)
    assert topic is not None
    topic.owner = 0
    return cluster


@pytest.fixture
def client(cluster: SandboxCluster) -> Client:
    """Return a connected client."""
    return Client(cluster)


@pytest.fixture
def other(cluster: SandboxCluster) -> Client:
    """Return a second connected client."""
    return Client(cluster)
