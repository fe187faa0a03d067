"""What a gateway knows of the groups of a real broker."""

from __future__ import annotations

import uuid

import confluent_kafka
from confluent_kafka.admin import AdminClient

from tests.apache_kafka.working import PATIENCE_S
from tests.real.gateways import Gateway
from tests.real.metrics import totals

from .conftest import Served


def test_the_lag_of_a_group_is_what_it_has_not_committed(served: Served, topic: str) -> None:
    started, group = served.gateway, f"g-{uuid.uuid4().hex[:8]}"
    where = {"bootstrap.servers": served.address}
    producer = confluent_kafka.Producer(where)

    def send(count: int) -> None:
        for number in range(count):
            producer.produce(topic, b"%d" % number)
            assert producer.flush(PATIENCE_S) == 0  # so that each is a batch

    send(20)
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(where | settings)
    consumer.subscribe([topic])
    read = 0
    while read < 8:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        consumer.commit(message=message, asynchronous=False)
        read += 1
    consumer.close()
    assert _lag(started, group, topic) == 20 - read
    send(5)  # while nobody consumes
    assert _lag(started, group, topic) == 25 - read
    admin = AdminClient({**where})
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert f'group="{group}"' not in started.ask("metrics/topics")[1]


def _lag(gateway: Gateway, group: str, topic: str) -> float:
    """Return how many messages a group has not committed, as a rule of Prometheus adds them up."""
    found = gateway.ask("metrics/topics")[1]
    ends = totals(found, "gateway_partition_end_offset", "topic", "partition")
    offsets = totals(found, "gateway_group_offset", "group", "topic", "partition")
    partitions = {it for name, it in ends if name == topic}
    return sum(ends[topic, it] - offsets.get((group, topic, it), 0) for it in partitions)
