"""Clients work without a gateway: what tests with one build on is right."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, produce, pull
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip

pytestmark = pytest.mark.real

COUNT = 100


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[TubeMQ]:
    made = or_skip(lambda say: TubeMQ(artifacts.directory("tubemq-direct"), say), say)
    made.start()
    yield made
    made.stop()


def test_a_group_receives_what_is_sent_once(broker: TubeMQ) -> None:
    tube, group = Tube(broker.classpath), f"group-{uuid.uuid4().hex}"
    assert produce(tube, broker.master, "demo", COUNT) == (COUNT, [])
    assert sorted(pull(tube, broker.master, "demo", group, COUNT)) == list(range(COUNT))
