"""One gateway and one broker for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .peers import Broker
from .process import HANDSHAKE, Gateway


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """It is polite unless a test says otherwise."""
    broker = Broker()
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def running(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The process. It must not have logged a bug by the end."""
    deadlines = {"handshake": f"{HANDSHAKE}s", "idle": "1h"}
    gateway = Gateway([broker], tmp_path_factory.mktemp("gateway"), deadlines)
    yield gateway
    gateway.stop()


@pytest.fixture
def gateway(running: Gateway) -> Iterator[Gateway]:
    """After each test it serves a good client."""
    yield running
    running.serves()
