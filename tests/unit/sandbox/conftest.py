"""A cluster of two brokers, the first of which has the usual topic."""

from __future__ import annotations

import pytest

from gateway.sandbox.cluster import Cluster
from gateway.sandbox.names import parse
from tests.unit.sandbox.playbook import TOPIC, URLS, Client


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(URLS)
    name = parse(TOPIC)
    assert name is not None
    topic = cluster.topic(name)
    assert topic is not None
    topic.owner = 0
    return cluster


@pytest.fixture
def client(cluster: Cluster) -> Client:
    """A client that is connected to it."""
    return Client(cluster)


@pytest.fixture
def other(cluster: Cluster) -> Client:
    """And another one."""
    return Client(cluster)
