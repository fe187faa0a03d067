"""One gateway and one broker for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .peers import Broker
from .process import HANDSHAKE, Gateway


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Return a broker that answers normally unless a test gives it another script."""
    broker = Broker()
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def running(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start the gateway process, and check at the end that it logged no bug."""
    yield from started(broker, tmp_path_factory.mktemp("gateway"), {})


@pytest.fixture(scope="session")
def hasty(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start a gateway like `running`, which gives clients less time to open a connection: for tests
    that wait for this deadline."""
    folder = tmp_path_factory.mktemp("hasty")
    yield from started(broker, folder, {"handshake": f"{HANDSHAKE}s"})


def started(broker: Broker, folder: Path, deadlines: dict[str, str]) -> Iterator[Gateway]:
    """Start a gateway process, and stop it, which checks that it logged no bug."""
    gateway = Gateway([broker], folder, {"idle": "1h"} | deadlines)
    yield gateway
    gateway.stop()


@pytest.fixture
def gateway(running: Gateway) -> Iterator[Gateway]:
    """Check after each test that the gateway serves a good client."""
    yield running
    running.serves()
