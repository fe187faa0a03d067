"""Messages beyond Pulsar's usual 5 MiB at a broker that accepts them: the limit is the broker's,
not the gateway's."""

from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.standalone import Standalone
from .clients import Client, fresh_topic, payloads, receive
from .fixtures import Connect, Reach, StartBroker
from .gateways import Plan

LIMIT = 10 * 1024 * 1024


@pytest.fixture(scope="module")
def broad_broker(start_broker: StartBroker) -> Standalone:
    return start_broker("large", max_message_size=LIMIT)


@pytest.fixture
def broad_client(broad_broker: Standalone, reach: Reach, connect: Connect) -> Client:
    return connect(reach(broad_broker).url)


def content(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


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
        producer.send_async(content(mebibytes * 1024 * 1024), None)
    producer.flush()
    assert [len(payload) for payload in payloads(receive(consumer, len(sizes)))] == [
        n * 1024 * 1024 for n in sizes
    ]


def test_the_broker_s_own_limit_still_applies(broad_client: Client) -> None:
    producer = broad_client.create_producer(fresh_topic())
    with pytest.raises(client_library.MessageTooBig):
        producer.send(bytes(LIMIT + 1))


WIDE = """
version: 1
rules:
  - {id: wide, limit: {publish: {bytes: 20GB/s}}, per: topic}
"""


@pytest.mark.gateway_only
@pytest.mark.parametrize("checksums", ["pass", "verify"])
def test_a_message_that_may_not_be_held_passes_all_the_same(
    broad_broker: Standalone, reach: Reach, connect: Connect, tmp_path: Path, checksums: str
) -> None:
    """Its head is judged and charged, and its bytes are verified as they pass."""
    rules = None
    if checksums == "pass":
        rules = tmp_path / "rules.yaml"
        rules.write_text(WIDE)
    plan = Plan(rules=rules, checksums=checksums, limits={"collected": "6MiB"})
    route = reach(broad_broker, plan)
    client, topic = connect(route.url), fresh_topic()
    consumer = client.subscribe(topic, "s")
    other, producer = client.create_producer(topic), client.create_producer(fresh_topic())
    largest = content(LIMIT - 1024)
    producer.send(content(8 * 1024 * 1024))
    other.send(b"other")
    other.send(largest)
    assert payloads(receive(consumer, 2)) == [b"other", largest]
    assert route.gateway is not None
    assert "frame_too_large" not in route.gateway.log.read_text()
