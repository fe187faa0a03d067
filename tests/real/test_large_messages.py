"""Messages beyond Pulsar's usual 5 MiB at a broker that accepts them: the limit is the broker's,
not the gateway's."""

from dataclasses import replace
from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.standalone import Standalone
from .clients import Client, fresh_topic, payloads, receive
from .fixtures import Connect, Reach, StartBroker
from .gateways import Plan
from .large import MOST, SIZES, assert_passed_once, content, holding_nothing, wide_rules

MIB = 1024 * 1024
LIMIT = 10 * MIB


@pytest.fixture(scope="module")
def broad_broker(start_broker: StartBroker) -> Standalone:
    return start_broker("large", max_message_size=LIMIT)


@pytest.fixture(scope="module")
def broadest_broker(start_broker: StartBroker) -> Standalone:
    cache = {"dbStorage_writeCacheMaxSizeMb": 2 * MOST // MIB + 1}  # a half holds a message
    jvm = ["-XX:MaxDirectMemorySize=2g"]
    return start_broker("largest", max_message_size=MOST, extra=cache, jvm=jvm)


@pytest.fixture
def broad_client(broad_broker: Standalone, reach: Reach, connect: Connect) -> Client:
    return connect(reach(broad_broker).url)


def test_a_message_of_almost_ten_mebibytes_arrives(broad_client: Client) -> None:
    topic = fresh_topic()
    consumer = broad_client.subscribe(topic, "s")
    producer = broad_client.create_producer(topic)
    large = content(LIMIT - 1024)
    for payload in (b"before", large, b"after"):
        producer.send(payload)
    assert payloads(receive(consumer, 3)) == [b"before", large, b"after"]


def test_large_messages_arrive_one_after_the_other(broad_client: Client) -> None:
    topic = fresh_topic()
    consumer = broad_client.subscribe(topic, "s")
    producer = broad_client.create_producer(topic)
    sizes = (6, 9, 7, 8)
    for mebibytes in sizes:
        producer.send_async(content(mebibytes * MIB), None)
    producer.flush()
    assert [len(payload) for payload in payloads(receive(consumer, len(sizes)))] == [
        n * MIB for n in sizes
    ]


def test_the_broker_s_own_limit_still_applies(broad_client: Client) -> None:
    producer = broad_client.create_producer(fresh_topic())
    with pytest.raises(client_library.MessageTooBig):
        producer.send(bytes(LIMIT + 1))


@pytest.fixture(params=["limited", "verified"])
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> Plan:
    """Return a plan of a gateway that charges heads, or verifies what passes."""
    if request.param == "verified":
        return Plan(checksums="verify")
    return Plan(rules=wide_rules(tmp_path))


@pytest.mark.gateway_only
def test_a_message_that_may_not_be_held_passes_all_the_same(
    broad_broker: Standalone, reach: Reach, connect: Connect, plan: Plan
) -> None:
    """Its head is decided and charged, and its bytes are verified as they pass."""
    route = reach(broad_broker, replace(plan, limits={"collected": "6MiB"}))
    client, topic = connect(route.url), fresh_topic()
    consumer = client.subscribe(topic, "s")
    other, producer = client.create_producer(topic), client.create_producer(fresh_topic())
    largest = content(LIMIT - 1024)
    producer.send(content(8 * MIB))
    other.send(b"other")
    other.send(largest)
    assert payloads(receive(consumer, 2)) == [b"other", largest]
    assert route.gateway is not None
    assert "frame_too_large" not in route.gateway.log.read_text()


@pytest.mark.gateway_only
@pytest.mark.parametrize("size", SIZES)
def test_a_gateway_s_memory_does_not_grow_with_a_message(
    broadest_broker: Standalone, reach: Reach, connect: Connect, plan: Plan, size: int
) -> None:
    route = reach(broadest_broker, plan)
    assert route.gateway is not None
    client, topic = connect(route.url), fresh_topic()

    def pass_through(topic: str, payload: bytes) -> bool:
        consumer = client.subscribe(topic, "s")
        client.create_producer(topic).send(payload)
        return payloads(receive(consumer, 1)) == [payload]

    assert pass_through(fresh_topic(), content(MIB))
    with holding_nothing(route.gateway):
        assert pass_through(topic, content(size))
    assert_passed_once(route.gateway, topic, size)
