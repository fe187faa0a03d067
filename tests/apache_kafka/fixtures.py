"""A plugin: one Kafka of one node for all tests that need no settings of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apache_kafka.broker import Kafka
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip


@pytest.fixture(scope="session")
def kafka(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    """Yield a broker without authentication."""
    made = or_skip(lambda say: Kafka(artifacts.directory("kafka"), say), say)
    made.start()
    yield made
    made.stop()
