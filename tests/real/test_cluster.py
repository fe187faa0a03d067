"""Two brokers that share the topics: lookups that are redirected, topics that move, brokers that
come and go.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from .brokers.cluster import HOSTS, Broker, Cluster
from .brokers.ports import free_ports
from .clients import Client, fresh_topic, numbered, receive_all_of, send_all, wait_until
from .conftest import Connect, Reach, Route, StartGateway
from .frames import Command, Connection, Kind, ServerError, decode, frames
from .gateways import CLUSTER, Gateway
from .metrics import scrape, total
from .test_moves import RATE, SECONDS, Traffic, disturbed

TOKEN = "the brokers do not look at it"
REDIRECT, CONNECT, FAILED = range(3)  # what a LOOKUP_RESPONSE says in field 3
MANY = 200  # lookups at once
# What they may cost the brokers in connections: the client's own, those that chases share, and some
# that have nothing to do with it.
FEW = 25


def topic_of_nobody(cluster: Cluster) -> str:
    """A new topic that no broker has yet."""
    return fresh_topic(namespace=cluster.fresh_namespace())


def topic_of(cluster: Cluster, broker: Broker) -> str:
    """A new topic that this broker has."""
    namespace = cluster.fresh_namespace()
    topics = (fresh_topic(namespace=namespace) for _ in range(100))
    return next(topic for topic in topics if cluster.owner(topic) is broker)


def lookup(url: str, topic: str) -> Command:
    """The answer to one lookup on a connection of its own."""
    with Connection(url) as connection:
        connection.connect(TOKEN)
        answer = connection.lookup(topic)
    assert answer
    assert answer.kind == Kind.LOOKUP_RESPONSE
    return answer


def name_in(answer: Command) -> str:
    """Whom a lookup's answer names, as a client sends it back."""
    assert answer.fields[3] == CONNECT
    return answer.text(1).removeprefix("pulsar://")


def figure(gateway: Gateway | None, name: str, **labels: str) -> float:
    assert gateway is not None
    return total(scrape(gateway.metrics_url), name, **labels)


def lookups(gateway: Gateway | None, outcome: str) -> float:
    return figure(gateway, "gateway_lookups_total", cluster=CLUSTER, outcome=outcome)


def redirects(gateway: Gateway | None) -> float:
    return figure(gateway, "gateway_lookup_redirects_total", cluster=CLUSTER)


def frames_to_clients(route: Route, kind: Kind) -> list[dict[int, int | bytes]]:
    """The fields of all commands of one kind that the tap has seen."""
    assert route.tap is not None
    commands = (
        decode(body[4 : 4 + int.from_bytes(body[:4])])
        for recording in route.tap.recordings
        for body in frames(bytes(recording))
        if len(body) >= 4 + int.from_bytes(body[:4])
    )
    inner = (command[kind] for command in commands if command[1] == kind)
    return [decode(fields) for fields in inner if isinstance(fields, bytes)]


# --- lookups that are redirected -----------------------------------------------------------------


def test_a_broker_redirects_what_nobody_has_yet(modular: Cluster) -> None:
    """The ground that the others stand on; no gateway is involved."""
    leader = modular.leader()
    answer = lookup(modular.other(leader).service_url, topic_of_nobody(modular))
    assert (answer.fields[3], answer.text(1)) == (REDIRECT, leader.service_url)


@pytest.mark.gateway_only
def test_redirects_are_followed_for_the_client(modular: Cluster, reach: Reach) -> None:
    """Connections take turns between the brokers, so two of these four do not ask the leader."""
    route = reach(modular)
    for _ in range(4):
        assert name_in(lookup(route.url, topic_of_nobody(modular)))
    assert redirects(route.gateway) >= 2
    assert lookups(route.gateway, "connect") == 4


@pytest.mark.gateway_only
def test_a_redirect_leads_to_a_name_of_the_owner(modular: Cluster, reach: Reach) -> None:
    """One that leads there. A namespace's topics are spread over the brokers."""
    route = reach(modular)
    namespace = modular.fresh_namespace()
    topics = [fresh_topic(namespace=namespace) for _ in range(16)]
    name_of = {topic: name_in(lookup(route.url, topic)) for topic in topics}
    names = {(modular.owner(topic), name) for topic, name in name_of.items()}
    assert {owner for owner, _ in names} == set(modular.brokers)
    assert len(names) == 2
    for owner, name in names:
        before = owner.connections()
        with Connection(route.url) as connection:
            answer = connection.connect(TOKEN, proxy_to_broker_url=name)
        assert answer
        assert answer.kind == Kind.CONNECTED
        assert owner.connections() > before


def test_a_client_works_with_topics_of_both_brokers(
    modular: Cluster, reach: Reach, connect: Connect
) -> None:
    """Topics that nobody has yet: a lookup goes to the leader first, then to whom it chose."""
    route = reach(modular)
    client = connect(route.url)
    namespace = modular.fresh_namespace()
    topics = [fresh_topic(namespace=namespace) for _ in range(24)]
    for topic in topics:
        consumer = client.subscribe(topic, "s")
        send_all(client.create_producer(topic), numbered(3))
        receive_all_of(consumer, numbered(3))
    assert {modular.owner(topic) for topic in topics} == set(modular.brokers)
    if route.gateway:
        assert redirects(route.gateway) > 0
        assert lookups(route.gateway, "connect") == 2 * len(topics)
        assert lookups(route.gateway, "failed") == lookups(route.gateway, "refused") == 0


@pytest.mark.gateway_only
def test_many_lookups_at_once_share_a_few_connections(modular: Cluster, reach: Reach) -> None:
    route = reach(modular)
    before = connections(modular)
    with Connection(route.url) as connection:
        connection.connect(TOKEN)
        for _ in range(2):
            look_up_at_once(connection, modular.fresh_namespace())
    assert lookups(route.gateway, "connect") == 2 * MANY
    assert redirects(route.gateway) > FEW
    assert connections(modular) - before <= FEW


def connections(cluster: Cluster) -> int:
    return sum(broker.connections() for broker in cluster.brokers)


def look_up_at_once(connection: Connection, namespace: str) -> None:
    """Asks for many topics without waiting for answers."""
    for request in range(MANY):
        connection.send(Kind.LOOKUP, {1: fresh_topic(namespace=namespace), 2: request})
    answers = [connection.receive() for _ in range(MANY)]
    assert {answer.fields[4] for answer in answers if answer} == set(range(MANY))
    assert all(name_in(answer) for answer in answers if answer)


# --- topics that move ----------------------------------------------------------------------------


def test_nothing_is_lost_when_a_namespace_is_unloaded(
    modular: Cluster, reach: Reach, connect: Connect
) -> None:
    """All its topics are closed at once, and clients have to look for all of them anew."""
    route = reach(modular)
    client = connect(route.url)
    namespace = modular.fresh_namespace()
    topic = fresh_topic("p", namespace)
    modular.admin.create_partitioned_topic(topic, 4)
    with disturbed(lambda: modular.unload(namespace)):
        assert_nothing_is_lost(client, topic)
    if route.tap:
        closes = frames_to_clients(route, Kind.CLOSE_PRODUCER)
        assert closes
        assert not any(3 in close for close in closes)
        assert redirects(route.gateway) > 0


def test_nothing_is_lost_when_a_topic_moves(
    extensible: Cluster, reach: Reach, connect: Connect
) -> None:
    route = reach(extensible)
    topic = topic_of_nobody(extensible)
    client = connect(route.url)
    with disturbed(lambda: move(extensible, topic)):
        assert_nothing_is_lost(client, topic)


def assert_nothing_is_lost(client: Client, topic: str) -> None:
    """Produces and consumes for some seconds: all is confirmed, and all that is confirmed comes."""
    consumer = client.subscribe(topic, "s")
    traffic = Traffic(client.create_producer(topic))
    with ThreadPoolExecutor(1) as pool:
        consuming = pool.submit(receive_all_of, consumer, numbered(int(RATE * SECONDS)))
        traffic.run()
        consuming.result()
    assert set(traffic.results) == {client_library.Result.Ok}


def move(cluster: Cluster, topic: str) -> None:
    cluster.move(topic, cluster.other(cluster.owner(topic)))


@pytest.mark.gateway_only
def test_clients_are_told_by_name_where_a_topic_has_gone(
    extensible: Cluster, reach: Reach, connect: Connect
) -> None:
    """They go there at once: no lookup follows."""
    route = reach(extensible)
    client = connect(route.url)
    topic = topic_of(extensible, extensible.brokers[0])
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    before = figure(route.gateway, "gateway_lookups_total")
    extensible.move(topic, extensible.brokers[1])
    send_all(producer, numbered(10))
    receive_all_of(consumer, numbered(10))
    assert figure(route.gateway, "gateway_lookups_total") == before
    name = f"pulsar://{name_in(lookup(route.url, topic))}".encode()
    for kind in (Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER):
        closes = frames_to_clients(route, kind)
        assert [(close[3], close[4]) for close in closes] == [(name, name)]


# --- brokers that may not be dialled -------------------------------------------------------------


@pytest.mark.gateway_only
def test_a_broker_that_is_no_target_is_refused(extensible: Cluster, reach: Reach) -> None:
    """The gateway knows one of the two brokers, which names the other."""
    allowed, forbidden = extensible.brokers
    route = reach(allowed)
    name = name_in(lookup(route.url, topic_of(extensible, forbidden)))
    with Connection(route.url) as connection:
        answer = connection.connect(TOKEN, proxy_to_broker_url=name)
        assert answer
        assert (answer.kind, answer.fields[2]) == (Kind.ERROR, ServerError.NOT_ALLOWED)
        assert answer.text(3) == "the gateway may not connect to this broker"
        assert connection.receive() is None
    assert ended(route.gateway, "target_refused") == 1


@pytest.mark.gateway_only
def test_a_redirect_to_what_is_no_target_is_refused(modular: Cluster, reach: Reach) -> None:
    """The gateway knows the one that is not the leader."""
    route = reach(modular.other(modular.leader()))
    answer = lookup(route.url, topic_of_nobody(modular))
    assert (answer.fields[3], answer.fields[6]) == (FAILED, ServerError.NOT_ALLOWED)
    assert answer.text(7) == "the gateway may not connect to this broker"
    assert lookups(route.gateway, "refused") == 1


def ended(gateway: Gateway | None, reason: str) -> float:
    return figure(gateway, "gateway_connections_ended_total", reason=reason)


# --- brokers that come and go --------------------------------------------------------------------


@dataclass(frozen=True)
class Nobody:
    """Addresses of brokers that are down."""

    service_url: str
    traces: tuple[str, ...]


@pytest.fixture
def nobody() -> Nobody:
    (port,) = free_ports(HOSTS[0], 1)
    return Nobody("pulsar://" + ",".join(f"{host}:{port}" for host in HOSTS), (*HOSTS, f":{port}"))


@pytest.mark.gateway_only
def test_a_client_is_told_when_no_broker_is_up(
    nobody: Nobody, gateway: StartGateway, reach: Reach
) -> None:
    route = reach(nobody, through=gateway(nobody, until="livez"))
    with Connection(route.url) as connection:
        answer = connection.connect(TOKEN)
        assert answer
        assert (answer.kind, answer.fields[2]) == (Kind.ERROR, ServerError.SERVICE_NOT_READY)
        assert answer.text(3) == f'no broker of cluster "{CLUSTER}" is reachable'
        assert connection.receive() is None
    assert ended(route.gateway, "no_broker") == 1
    assert route.gateway
    assert route.gateway.ask("readyz") == (503, f"no healthy broker in cluster {CLUSTER}\n")


@pytest.fixture
def restored(extensible: Cluster) -> Iterator[Cluster]:
    """Has the cluster's brokers all up again after the test."""
    yield extensible
    for broker in extensible.brokers:
        broker.start()


@pytest.mark.gateway_only
def test_a_broker_that_stops_is_left_out_until_it_is_back(
    restored: Cluster, reach: Reach, connect: Connect
) -> None:
    """New clients do not notice; one that worked with it goes on with the other."""
    route = reach(restored)
    stays, stops = restored.brokers
    client = connect(route.url)
    topic = topic_of(restored, stops)
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    assert (healthy(route, stays), healthy(route, stops)) == (1, 1)
    stops.stop()
    for _ in range(4):
        assert name_in(lookup(route.url, fresh_topic()))
    assert (healthy(route, stays), healthy(route, stops)) == (1, 0)
    send_all(producer, numbered(10))
    receive_all_of(consumer, numbered(10))
    stops.start()
    wait_until(lambda: healthy(route, stops) == 1, 20)
    before = stops.connections()
    for _ in range(4):
        assert name_in(lookup(route.url, topic))
    assert stops.connections() >= before + 2


def healthy(route: Route, broker: Broker) -> float:
    address = broker.service_url.removeprefix("pulsar://")
    return figure(route.gateway, "gateway_broker_healthy", cluster=CLUSTER, broker=address)
