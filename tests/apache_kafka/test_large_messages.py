"""Messages far beyond what a gateway may hold of frames, at a broker that accepts them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_kafka.working import PATIENCE_S, create, received
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import HOST
from tests.real.large import MOST, SIZES, assert_passed_once, content, holding_nothing, wide_rules

pytestmark = pytest.mark.real

FRAMES = 2 * MOST
"""Bytes of the largest request or response: more than a message."""

BROAD = f"""\
message.max.bytes={MOST}
replica.fetch.max.bytes={MOST}
socket.request.max.bytes={FRAMES}
"""

SENDING = {"message.max.bytes": MOST}
RECEIVING = {"fetch.message.max.bytes": MOST, "receive.message.max.bytes": FRAMES}


@pytest.fixture(scope="module")
def broad_kafka(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    """Yield a broker that accepts messages of all `SIZES`."""
    folder = artifacts.directory("kafka-large")
    made = or_skip(lambda say: Kafka(folder, say, BROAD, jvm=["-Xmx1g"]), say)
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("limited", [False, True], ids=["unlimited", "limited"])
@pytest.mark.parametrize("size", SIZES)
def test_a_gateway_s_memory_does_not_grow_with_a_message(
    broad_kafka: Kafka, gateway: StartGateway, tmp_path: Path, size: int, limited: bool
) -> None:
    rules = wide_rules(tmp_path) if limited else None
    started = gateway(broad_kafka, KafkaPlan(rules=rules))
    where = {"bootstrap.servers": f"{HOST}:{started.port}"}
    producer = confluent_kafka.Producer(where | SENDING)
    first, topic = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("first", "large"))
    create(where, first, topic)

    def pass_through(topic: str, payload: bytes) -> bool:
        producer.produce(topic, payload)
        assert producer.flush(PATIENCE_S) == 0
        return received(where | RECEIVING, topic, 1) == [payload]

    assert pass_through(first, content(1_000_000))
    with holding_nothing(started):
        assert pass_through(topic, content(size))
    assert_passed_once(started, topic, size)


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
def test_a_large_request_of_several_topics_passes_whole(
    broad_kafka: Kafka, gateway: StartGateway
) -> None:
    """kafka-python sends what it has for a broker in one request, at first to topics that the
    gateway has not met."""
    import kafka

    started = gateway(broad_kafka, KafkaPlan())
    address = f"{HOST}:{started.port}"
    where = {"bootstrap.servers": address}
    topics = [f"several-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    create(where, *topics)
    producer = kafka.KafkaProducer(
        bootstrap_servers=address, max_request_size=FRAMES, linger_ms=1000, retries=0
    )
    for topic in topics:
        producer.partitions_for(topic)
    payload = content(SIZES[0] // 2)
    sent = [producer.send(topic, payload, partition=0) for topic in topics]
    assert [it.get(PATIENCE_S).offset for it in sent] == [0, 0]
    producer.close()
    for topic in topics:
        assert received(where | RECEIVING, topic, 1) == [payload]
        assert_passed_once(started, topic, len(payload))
