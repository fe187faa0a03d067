"""Clients of each library send and receive, and see the gateway alone."""

from __future__ import annotations

import os
from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from tests.apache_kafka.broker import HOST as BROKERS_HOST
from tests.apache_kafka.gateways import TAP
from tests.apache_kafka.working import (
    PATIENCE_S,
    aio,
    idempotent,
    kafka_python,
    librdkafka,
    librdkafka_compressed,
    payloads,
    received,
)
from tests.real.clients import wait_until
from tests.real.metrics import scrape, total

from .conftest import Served

LARGEST = 1_048_588
"""Bytes of a batch that a broker takes unless it is told otherwise (`message.max.bytes`)."""
ROOM = 80
"""More than a batch and its one record have beside the payload."""


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("work", [librdkafka, librdkafka_compressed, idempotent, aio, kafka_python])
def test_clients_send_and_receive(
    served: Served, topic: str, work: Callable[..., list[bytes]]
) -> None:
    assert sorted(work(served.address, topic)) == sorted(payloads())
    counted = served.gateway.ask("metrics/topics")[1]
    labels = f'topic="{topic}",direction="to_client"'
    assert f"{labels}}} {len(payloads())}" in counted
    found = scrape(served.gateway.metrics_url)
    for timed in ("send", "send_own", "lookup"):
        assert total(found, f"gateway_{timed}_seconds_count") > 0


def test_the_largest_message_that_a_broker_takes_passes_whole(served: Served, topic: str) -> None:
    """The broker itself refuses a larger one, and goes on."""
    where = {"bootstrap.servers": served.address}
    producer = confluent_kafka.Producer(where | {"message.max.bytes": 2 * LARGEST})
    payload = os.urandom(LARGEST - ROOM)
    outcomes: list[int] = []

    def done(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        outcomes.append(error.code() if error else 0)

    for sent in (payload, payload + bytes(ROOM), b"small"):
        producer.produce(topic, sent, partition=0, on_delivery=done)
        assert producer.flush(PATIENCE_S) == 0
    assert outcomes == [0, confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE, 0]
    is_whole = received(where, topic, 2) == [payload, b"small"]
    assert is_whole  # by itself, as a difference of this size takes minutes to show


def test_administrators_do_what_they_do_and_see_no_broker(served: Served, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": served.address})
    for grown in admin.create_partitions([NewPartitions(topic, 5)]).values():
        grown.result(PATIENCE_S)
    wait_until(lambda: len(admin.list_topics(topic, PATIENCE_S).topics[topic].partitions) == 5)
    for kind, name in ((ResourceType.TOPIC, topic), (ResourceType.BROKER, "1")):
        (described,) = admin.describe_configs([ConfigResource(kind, name)]).values()
        values = {it.name: it.value for it in described.result(PATIENCE_S).values()}
        assert values
        assert not any(BROKERS_HOST in (it or "") for it in values.values()), values
    cluster = admin.describe_cluster(request_timeout=PATIENCE_S).result()
    assert {it.host for it in cluster.nodes} == {TAP}
    groups = admin.list_consumer_groups(request_timeout=PATIENCE_S).result()
    assert groups.errors == []
    for gone in admin.delete_topics([topic]).values():
        gone.result(PATIENCE_S)
    wait_until(lambda: topic not in admin.list_topics(timeout=PATIENCE_S).topics)


def test_nothing_that_clients_read_names_a_broker(served: Served, topic: str) -> None:
    """Brokers and the group's coordinator have the gateway's address, to the last byte."""
    assert sorted(librdkafka(served.address, topic)) == sorted(payloads())
    assert TAP.encode() in served.tap.told
    assert BROKERS_HOST.encode() not in served.tap.told
