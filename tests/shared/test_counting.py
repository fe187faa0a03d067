"""The gateway's metrics agree with what clients sent and received."""

import pytest
from pulsar import ConsumerType  # type: ignore[import-untyped, unused-ignore]

from tests.real.clients import RECEIVE_MS, Client, fresh_topic, numbered, receive, send_all
from tests.real.fixtures import Route
from tests.real.gateways import CLUSTER
from tests.real.metrics import scrape, settled_total, total

pytestmark = pytest.mark.gateway_only


def counted(route: Route, topic: str, direction: str, expected: float) -> float:
    assert route.gateway is not None
    labels = {
        "cluster": CLUSTER,
        "tenant": "public",
        "namespace": "default",
        "topic": topic,
        "direction": direction,
    }
    return settled_total(
        route.gateway.metrics_url, expected, "gateway_topic_messages_total", **labels
    )


def counted_bytes(route: Route, topic: str, direction: str) -> float:
    assert route.gateway is not None
    return total(
        scrape(route.gateway.metrics_url),
        "gateway_topic_bytes_total",
        topic=topic,
        direction=direction,
    )


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_every_message_is_counted_for_its_topic(
    client: Client, route: Route, batched: bool
) -> None:
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic, batching_enabled=batched), numbered(500))
    assert counted(route, topic, "to_broker", 500) == 500
    receive(consumer, 500)
    assert counted(route, topic, "to_client", 500) == 500


def test_messages_are_counted_for_each_subscription(client: Client, route: Route) -> None:
    topic = fresh_topic()
    consumers = [client.subscribe(topic, name) for name in ("a", "b", "c")]
    send_all(client.create_producer(topic), numbered(20))
    for consumer in consumers:
        receive(consumer, 20)
    assert counted(route, topic, "to_client", 60) == 60


def test_each_topic_is_counted_separately(client: Client, route: Route) -> None:
    topics = [fresh_topic() for _ in range(3)]
    for count, topic in enumerate(topics, start=1):
        send_all(client.create_producer(topic), numbered(count))
    assert [
        counted(route, topic, "to_broker", count) for count, topic in enumerate(topics, start=1)
    ] == [1, 2, 3]


def test_counted_bytes_slightly_exceed_the_messages(client: Client, route: Route) -> None:
    topic = fresh_topic()
    content = bytes(100_000)
    send_all(client.create_producer(topic), [content] * 10)
    assert counted(route, topic, "to_broker", 10) == 10
    assert 1_000_000 <= counted_bytes(route, topic, "to_broker") <= 1_010_000


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_what_a_consumer_gets_again_is_counted(
    client: Client, route: Route, kind: ConsumerType
) -> None:
    topic = fresh_topic()
    # Clients gather acknowledgements for 100 ms. Of what the broker knows no acknowledgement, it
    # sends all again to an exclusive consumer, so these have to be there first.
    consumer = client.subscribe(
        topic, "s", consumer_type=kind, negative_ack_redelivery_delay_ms=1000
    )
    send_all(client.create_producer(topic, batching_enabled=False), numbered(10))
    first = [consumer.receive(RECEIVE_MS) for _ in range(10)]
    for message in first[:9]:
        consumer.acknowledge(message)
    consumer.negative_acknowledge(first[9])
    again = consumer.receive(RECEIVE_MS)
    assert again.data() == first[9].data()
    assert route.gateway is not None
    count = settled_total(
        route.gateway.metrics_url,
        again.redelivery_count(),
        "gateway_topic_redelivered_frames_total",
        topic=topic,
        direction="to_client",
    )
    assert count == again.redelivery_count()


def test_bytes_are_counted_for_the_broker_too(client: Client, route: Route) -> None:
    topic = fresh_topic()
    send_all(client.create_producer(topic), [bytes(100_000)] * 10)
    assert counted(route, topic, "to_broker", 10) == 10
    assert route.gateway is not None
    samples = scrape(route.gateway.metrics_url)
    moved = total(samples, "gateway_broker_bytes_total", direction="to_broker")
    assert moved >= counted_bytes(route, topic, "to_broker")
    assert total(samples, "gateway_broker_connections") >= 1
