"""A plugin: one TubeMQ for all tests but those that need several masters, and what they share.

The conftests of the folders that have such tests import it. It is a plugin, so that they have the
same servers if they run in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.certified import Site, named_by_certificates
from tests.apache_tubemq.clients import Tube
from tests.apache_tubemq.gateways import ALICE_ALONE, in_front_of
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import Gateway

TOPICS = [f"t{number}" for number in range(64)]
"""More than there are tests. A topic more takes no time."""

USERS = "alice:wonder land\nbob:builder\n"


@pytest.fixture(scope="session")
def tubemq(artifacts: Artifacts, say: Say) -> Iterator[TubeMQ]:
    """A master and two brokers."""
    folder = artifacts.directory("tubemq")
    made = or_skip(lambda say: TubeMQ(folder, say, topics=TOPICS), say)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def topics() -> Iterator[str]:
    """Return the topics that no test has used yet."""
    return iter(TOPICS)


@pytest.fixture
def topic(topics: Iterator[str]) -> str:
    """Return a topic that is empty."""
    return next(topics)


@pytest.fixture
def tube(tubemq: TubeMQ) -> Tube:
    """Return clients that do not say who they are."""
    return Tube(tubemq.classpath)


@pytest.fixture
def guarded(tubemq: TubeMQ, gateway: StartGateway, tmp_path: Path) -> Gateway:
    """Return a gateway that knows alice and bob, of whom alice may do everything."""
    users, rules = tmp_path / "users", tmp_path / "rules.yaml"
    users.write_text(USERS)
    users.chmod(0o600)
    rules.write_text(ALICE_ALONE)
    identity = {"mode": "verify", "signature": {"users_file": str(users)}}
    return gateway(tubemq, in_front_of(tubemq, identity=identity, rules=rules, access="closed"))


@pytest.fixture
def site(tubemq: TubeMQ, gateway: StartGateway, tmp_path: Path) -> Site:
    """Return a gateway that names clients by their certificates."""
    return named_by_certificates(tubemq, gateway, tmp_path)
