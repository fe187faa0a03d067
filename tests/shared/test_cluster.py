"""Two brokers that share the topics: lookups are redirected, and topics move."""

from concurrent.futures import ThreadPoolExecutor

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.clients import Client, numbered, receive_all_of, send_all
from tests.real.configurations import ReachConfigured
from tests.real.fixtures import Connect, Reach
from tests.real.frames import Kind
from tests.real.probes import figure, lookup, lookups, name_in, redirects
from tests.real.traffic import RATE, Traffic, disturbed

from .clusters import Pair

MANY = 24
"""New topics: enough for both brokers to have some of them."""


# --- redirected lookups --------------------------------------------------------------------------


@pytest.mark.gateway_only
def test_redirects_are_followed_for_the_client(redirecting: Pair, reach: Reach) -> None:
    """Connections alternate between the brokers, so some ask a broker without the topic."""
    route = reach(redirecting)
    for topic in redirecting.unassigned_topics(MANY):
        assert name_in(lookup(route.url, topic))
    assert redirects(route.gateway) > 0
    assert lookups(route.gateway, "connect") == MANY


def test_a_client_works_with_topics_of_both_brokers(
    redirecting: Pair, reach: Reach, connect: Connect
) -> None:
    """A lookup of an unassigned topic may go to one broker first and then to the other."""
    route = reach(redirecting)
    client = connect(route.url)
    topics = redirecting.unassigned_topics(MANY)
    for topic in topics:
        consumer = client.subscribe(topic, "s")
        send_all(client.create_producer(topic), numbered(3))
        receive_all_of(consumer, numbered(3))
    owners = {redirecting.owner(topic).service_url for topic in topics}
    assert owners == {broker.service_url for broker in redirecting.brokers}
    if route.gateway:
        assert redirects(route.gateway) > 0
        assert lookups(route.gateway, "connect") == 2 * MANY
        assert lookups(route.gateway, "failed") == lookups(route.gateway, "refused") == 0


# --- topics that move ----------------------------------------------------------------------------


@pytest.mark.timing
def test_nothing_is_lost_when_partitions_are_unloaded(
    redirecting: Pair, reach_configured: ReachConfigured, connect: Connect, seconds: float
) -> None:
    """All partitions close at once, and clients look all of them up again."""
    route = reach_configured(redirecting)
    topic = redirecting.unassigned_topic(4)
    with disturbed(lambda: redirecting.move(topic), seconds):
        assert_nothing_is_lost(connect(route.url, route.token), topic, seconds)
    if route.tap:
        closes = route.tap.commands(Kind.CLOSE_PRODUCER)
        assert closes
        assert not any(3 in close for close in closes)
        assert redirects(route.gateway) > 0


@pytest.mark.timing
def test_nothing_is_lost_when_a_topic_moves(
    assigning: Pair, reach_configured: ReachConfigured, connect: Connect, seconds: float
) -> None:
    route = reach_configured(assigning)
    topic = assigning.unassigned_topic()
    client = connect(route.url, route.token)
    client.subscribe(topic, "s").close()  # brokers know the topic before it is moved
    with disturbed(lambda: assigning.move(topic), seconds):
        assert_nothing_is_lost(client, topic, seconds)


def assert_nothing_is_lost(client: Client, topic: str, seconds: float) -> None:
    """Produce and consume for a while: every message is acknowledged, and every acknowledged
    message arrives."""
    consumer = client.subscribe(topic, "s")
    traffic = Traffic(client.create_producer(topic), seconds)
    with ThreadPoolExecutor(1) as pool:
        consuming = pool.submit(receive_all_of, consumer, numbered(int(RATE * seconds)))
        traffic.run()
        consuming.result()
    assert set(traffic.results) == {client_library.Result.Ok}


@pytest.mark.gateway_only
def test_clients_are_told_by_name_where_a_topic_has_moved(
    assigning: Pair, reach: Reach, connect: Connect
) -> None:
    """The clients reconnect there at once: no lookup follows."""
    route = reach(assigning)
    client = connect(route.url)
    topic = assigning.unassigned_topic()
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    before = figure(route.gateway, "gateway_lookups_total")
    assigning.move(topic)
    send_all(producer, numbered(10))
    receive_all_of(consumer, numbered(10))
    assert figure(route.gateway, "gateway_lookups_total") == before
    name = f"pulsar://{name_in(lookup(route.url, topic))}".encode()
    assert route.tap
    for kind in (Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER):
        closes = route.tap.commands(kind)
        assert [(close[3], close[4]) for close in closes] == [(name, name)]
