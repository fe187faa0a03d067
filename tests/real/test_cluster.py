"""Two brokers that share the topics: redirected lookups, and brokers that stop and start.
`tests/shared/test_cluster.py` has what the sandbox can show as well."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from .brokers.cluster import HOSTS, Broker, Cluster
from .brokers.ports import free_ports
from .clients import fresh_topic, numbered, receive_all_of, send_all, wait_until
from .fixtures import Connect, Reach, Route, StartGateway
from .frames import Connection, Kind, ServerError
from .gateways import CLUSTER
from .probes import (
    FAILED,
    REDIRECT,
    TOKEN,
    ended,
    figure,
    lookup,
    lookups,
    name_in,
    redirects,
)

MANY = 200  # lookups at once
# Connections that they may cost the brokers: the client's own, those shared by chases, and some
# that have other causes.
FEW = 25


def unassigned_topic(cluster: Cluster) -> str:
    """Return a new topic without a broker."""
    return fresh_topic(namespace=cluster.fresh_namespace())


def topic_of(cluster: Cluster, broker: Broker) -> str:
    """Return a new topic of this broker."""
    namespace = cluster.fresh_namespace()
    topics = (fresh_topic(namespace=namespace) for _ in range(100))
    return next(topic for topic in topics if cluster.owner(topic) is broker)


# --- redirected lookups --------------------------------------------------------------------------


def test_a_broker_redirects_lookups_of_unassigned_topics(modular: Cluster) -> None:
    """The other tests rely on this fact; no gateway is involved."""
    leader = modular.leader()
    answer = lookup(modular.other(leader).service_url, unassigned_topic(modular))
    assert (answer.fields[3], answer.text(1)) == (REDIRECT, leader.service_url)


@pytest.mark.gateway_only
def test_a_redirect_leads_to_a_working_name_of_the_owner(modular: Cluster, reach: Reach) -> None:
    """The topics of a namespace are spread over the brokers."""
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
    """Look up many topics without waiting for answers."""
    for request in range(MANY):
        connection.send(Kind.LOOKUP, {1: fresh_topic(namespace=namespace), 2: request})
    answers = [connection.receive() for _ in range(MANY)]
    assert {answer.fields[4] for answer in answers if answer} == set(range(MANY))
    assert all(name_in(answer) for answer in answers if answer)


# --- brokers that may not be dialled -------------------------------------------------------------


@pytest.mark.gateway_only
def test_a_broker_outside_the_targets_is_refused(extensible: Cluster, reach: Reach) -> None:
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
def test_a_redirect_outside_the_targets_is_refused(modular: Cluster, reach: Reach) -> None:
    """The gateway knows only the broker that is not the leader."""
    route = reach(modular.other(modular.leader()))
    answer = lookup(route.url, unassigned_topic(modular))
    assert (answer.fields[3], answer.fields[6]) == (FAILED, ServerError.NOT_ALLOWED)
    assert answer.text(7) == "the gateway may not connect to this broker"
    assert lookups(route.gateway, "refused") == 1


# --- brokers that stop and start -----------------------------------------------------------------


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
    """Yield the cluster, and start all its stopped brokers after the test."""
    yield extensible
    for broker in extensible.brokers:
        broker.start()


@pytest.mark.gateway_only
def test_a_broker_that_stops_is_left_out_until_it_is_back(
    restored: Cluster, reach: Reach, connect: Connect
) -> None:
    """New clients notice nothing; a client of that broker goes on with the other."""
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
    wait_until(lambda: healthy(route, stops) == 1)
    before = stops.connections()
    for _ in range(4):
        assert name_in(lookup(route.url, topic))
    assert stops.connections() >= before + 2


def healthy(route: Route, broker: Broker) -> float:
    address = broker.service_url.removeprefix("pulsar://")
    return figure(route.gateway, "gateway_broker_healthy", cluster=CLUSTER, broker=address)
