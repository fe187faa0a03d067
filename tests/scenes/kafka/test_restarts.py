"""What happens to the gateway, or to its broker, loses and doubles nothing.

A leader moves between brokers, of which there is one here: `tests/apache_kafka/test_cluster.py` has
three.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.traffic import Traffic

from .conftest import Served

Happening = Callable[[Served, Kafka], None]


def gateway_restarted(served: Served, _broker: Kafka) -> None:
    """The gateway stops in good order, and starts again."""
    try:
        served.gateway.stop()
    finally:
        served.gateway.start()  # other scenes need it


def broker_restarted(_served: Served, broker: Kafka) -> None:
    """The broker is killed, and starts again."""
    broker.stop()
    broker.start()


@pytest.mark.parametrize("happening", [gateway_restarted, broker_restarted])
def test_what_is_sent_meanwhile_arrives_once(
    kafka: Kafka, served: Served, topic: str, happening: Happening
) -> None:
    with Traffic(served.address, topic) as traffic:
        traffic.go_on()
        happening(served, kafka)
        traffic.go_on()
        traffic.end()
    assert traffic.failed == []
    assert traffic.lost_and_doubled == (0, 0)
