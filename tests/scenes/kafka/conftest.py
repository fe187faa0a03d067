"""One broker for all scenes, and the gateway that most of them share. Its clients reach it by a
tap: whatever a scene is about, they read no address of the broker."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.apache_kafka.broker import HOST, Kafka
from tests.apache_kafka.gateways import TAP, KafkaPlan, Tap
from tests.apache_kafka.working import create
from tests.real.artifacts import Artifacts
from tests.real.gateways import Gateway


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/scenes/kafka/"):
            item.add_marker(pytest.mark.real)


class Served(NamedTuple):
    """A gateway, and the tap through which its clients connect."""

    gateway: Gateway
    tap: Tap

    @property
    def address(self) -> str:
        """Return where clients begin."""
        return f"{TAP}:{self.gateway.port}"


@pytest.fixture(scope="session")
def shared(kafka: Kafka, artifacts: Artifacts) -> Iterator[Served]:
    plan = KafkaPlan(host=TAP)
    made = Gateway(kafka, plan, artifacts.directory("gateway-kafka-scenes"))
    made.start()
    tap = Tap(made, plan)
    yield Served(made, tap)
    tap.close()
    made.stop()


@pytest.fixture
def served(shared: Served) -> Iterator[Served]:
    """Yield the shared gateway; at the end no client may have read an address of the broker."""
    shared.tap.told.clear()
    yield shared
    assert HOST.encode() not in shared.tap.told


@pytest.fixture
def topic(served: Served) -> str:
    """Return a new topic."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    create({"bootstrap.servers": served.address}, name)
    return name
