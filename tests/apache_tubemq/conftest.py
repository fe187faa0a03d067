"""Servers for the tests of a module. The module says what they need: `TOPICS`, and `MASTERS` if
there are several."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, artifacts: Artifacts, say: Say) -> Iterator[TubeMQ]:
    module = request.module
    folder = artifacts.directory(f"tubemq-{module.__name__.rpartition('_')[2]}")
    masters = getattr(module, "MASTERS", 1)
    made = or_skip(lambda say: TubeMQ(folder, say, topics=module.TOPICS, masters=masters), say)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def topics(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the topics that no test has used yet."""
    return iter(request.module.TOPICS)
