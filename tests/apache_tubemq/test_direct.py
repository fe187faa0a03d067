"""Clients work without a gateway: what tests with one build on is right."""

from __future__ import annotations

import pytest

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, group, produce, pull

pytestmark = pytest.mark.real

COUNT = 100


def test_a_group_receives_what_is_sent_once(tubemq: TubeMQ, tube: Tube, topic: str) -> None:
    assert produce(tube, tubemq.master, topic, COUNT) == (COUNT, [])
    assert sorted(pull(tube, tubemq.master, topic, group(), COUNT)) == list(range(COUNT))
