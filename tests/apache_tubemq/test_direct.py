"""Clients work without a gateway: what tests with one build on is right."""

from __future__ import annotations

import uuid

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, produce, pull

pytestmark = pytest.mark.real

COUNT = 100
TOPICS = ["demo"]


def test_a_group_receives_what_is_sent_once(broker: TubeMQ) -> None:
    tube, group = Tube(broker.classpath), f"group-{uuid.uuid4().hex}"
    assert produce(tube, broker.master, "demo", COUNT) == (COUNT, [])
    assert sorted(pull(tube, broker.master, "demo", group, COUNT)) == list(range(COUNT))
