"""A cluster that is migrated to another one (blue-green), with a gateway in front of each."""

from dataclasses import dataclass

import pytest

from gateway.wire.pulsar.frames import Kind as Commands
from tests.sandbox.peer import Peer

from .brokers.standalone import Standalone
from .clients import fresh_topic, numbered, payloads, receive, send_all, wait_until
from .fixtures import Connect, Exposed, Reach, Route, StartBroker
from .frames import Kind
from .gateways import CLUSTER, Plan
from .probes import figure

COUNT = 20


@dataclass(frozen=True)
class Blue:
    """A cluster that migrates, and then knows `green` too: clients may see neither."""

    broker: Standalone
    green: Standalone

    @property
    def service_url(self) -> str:
        return self.broker.service_url

    @property
    def traces(self) -> tuple[str, ...]:
        return (*self.broker.traces, *self.green.traces)

    def migrate(self) -> None:
        """Migrate the cluster for good: its topics cannot return."""
        urls = {"serviceUrl": self.green.admin.url, "brokerServiceUrl": self.green.service_url}
        self.broker.admin.request("POST", "admin/v2/clusters/blue/migrate?migrated=true", urls)


@pytest.fixture(scope="module")
def green(start_broker: StartBroker) -> Standalone:
    return start_broker("green", host="127.0.0.83", extra={"clusterName": "green"})


@pytest.fixture
def blue(start_broker: StartBroker, green: Standalone) -> Blue:
    """Return a new cluster for each test. It checks once a second if it is migrated."""
    looks = {"clusterName": "blue", "clusterMigrationCheckDurationSeconds": 1}
    return Blue(start_broker("blue", host="127.0.0.82", extra=looks), green)


def clients_at(broker: Standalone, topic: str) -> tuple[int, int]:
    """Return the numbers of producers and consumers of a topic, which the broker may not have."""
    if topic not in broker.admin.request("GET", "admin/v2/persistent/public/default"):
        return 0, 0
    stats = broker.admin.stats(topic)
    subscriptions = stats["subscriptions"].values()
    return len(stats["publishers"]), sum(len(it["consumers"]) for it in subscriptions)


def migrations(route: Route, outcome: str) -> float:
    return figure(route.gateway, "gateway_migrations_total", cluster=CLUSTER, outcome=outcome)


def test_clients_move_to_the_gateway_of_the_other_cluster(
    blue: Blue, green: Standalone, reach: Reach, connect: Connect
) -> None:
    """The consumer stays until it has received everything from its cluster. (A producer that sends
    at that moment may be shut out by its broker for good, also on a direct connection.)"""
    there = reach(green)
    here = reach(blue, Plan(migrations={green.service_url: there.url}))
    client, topic = connect(here.url), fresh_topic()
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    send_all(producer, numbered(COUNT))
    blue.migrate()
    wait_until(lambda: clients_at(green, topic)[0] == 1)
    assert payloads(receive(consumer, COUNT)) == numbered(COUNT)
    wait_until(lambda: clients_at(green, topic) == (1, 1))
    send_all(producer, numbered(COUNT, start=COUNT))
    assert payloads(receive(consumer, COUNT)) == numbered(COUNT, start=COUNT)
    assert green.admin.stats(topic)["msgInCounter"] == COUNT
    if here.tap and there.tap:
        told = here.tap.commands(Kind.TOPIC_MIGRATED)
        assert {(it[3], it[4]) for it in told} == {(there.url.encode(),) * 2}
        assert migrations(here, "told") == len(told) >= 2
        assert len(there.tap.recordings) == 2


@pytest.mark.gateway_only
def test_clients_are_not_told_of_a_cluster_without_a_gateway(
    blue: Blue, green: Standalone, reach: Reach, connect: Connect, exposed: Exposed
) -> None:
    route = reach(blue)
    client, topic = connect(route.url), fresh_topic()
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    send_all(producer, numbered(COUNT))
    blue.migrate()
    wait_until(lambda: migrations(route, "withheld") > 0)
    assert payloads(receive(consumer, COUNT)) == numbered(COUNT)
    assert route.tap
    assert route.tap.commands(Kind.TOPIC_MIGRATED) == []
    assert migrations(route, "told") == 0
    assert clients_at(green, topic) == (0, 0)

    def open_after_migration(url: str) -> None:
        """Open a topic after its migration, so that the broker answers with the new place."""
        with Peer(url.removeprefix("pulsar://")) as peer:
            peer.connect()
            answer = peer.ask(Commands.LOOKUP, topic=topic, request_id=1, authoritative=False)
        with Peer(url.removeprefix("pulsar://")) as peer:
            peer.connect(proxy_to_broker_url=answer.brokerServiceUrl.removeprefix("pulsar://"))
            peer.ask(Commands.PRODUCER, topic=topic, producer_id=1, request_id=1)

    assert exposed(blue, open_after_migration, "migration") >= {green.host, f":{green.port}"}
    assert exposed(blue, open_after_migration) == set()
