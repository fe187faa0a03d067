"""Gateways that stop and start while clients live. (The fixture checks that each exits in good
order.)"""

import pytest

from .brokers.standalone import Standalone
from .clients import (
    Client,
    Producer,
    fresh_topic,
    numbered,
    payloads,
    receive,
    send_all,
    wait_until,
)
from .fixtures import Connect, Reach, Route

pytestmark = pytest.mark.gateway_only


@pytest.fixture
def own_route(pulsar: Standalone, reach: Reach) -> Route:
    """Return a route by a gateway that no other test uses."""
    return reach(pulsar)


@pytest.fixture
def producer(own_route: Route, connect: Connect) -> Producer:
    return connect(own_route.url).create_producer(fresh_topic())


def test_a_gateway_stops_with_connected_clients(own_route: Route, producer: Producer) -> None:
    producer.send(b"x")
    assert own_route.gateway is not None
    own_route.gateway.stop()


def test_clients_come_back_to_a_new_gateway(own_route: Route, connect: Connect) -> None:
    """The new gateway has another key and cannot open the clients' names, so they must look up
    again."""
    client: Client = connect(own_route.url)
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    send_all(producer, numbered(10))
    assert own_route.gateway is not None
    own_route.gateway.stop()
    own_route.gateway.start()
    wait_until(producer.is_connected, 30)
    send_all(producer, numbered(10, start=10))
    assert set(payloads(receive(consumer, 20))) == set(numbered(20))
