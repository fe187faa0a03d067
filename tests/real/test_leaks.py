"""What real brokers say of themselves: a tap finds it as soon as the gateway does not hide it.

Each kind of leak, those too that real brokers show rarely: `tests/shared/test_leaks.py`.
"""

import secrets

import pytest

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.sandbox.peer import Peer

from .brokers.cluster import Cluster
from .brokers.standalone import Standalone
from .clients import fresh_topic
from .fixtures import Exposed

pytestmark = pytest.mark.gateway_only

BROKERS_OWN = "persistent://pulsar/system/loadbalancer-service-unit-state"
"""Who has which bundle."""

ANSWERS = BaseCommand.MESSAGE, BaseCommand.ERROR


def arrive(url: str, **connect: str) -> Peer:
    peer = Peer(url.removeprefix("pulsar://"))
    peer.connect(**connect)
    return peer


def name_of(url: str, topic: str) -> str:
    """What a topic's broker is called."""
    with arrive(url) as client:
        answer = client.ask(Kind.LOOKUP, topic=topic, request_id=1, authoritative=False)
    named: str = answer.brokerServiceUrl
    return named.removeprefix("pulsar://")


def hosts(cluster: Cluster) -> set[str]:
    return {broker.host for broker in cluster.brokers}


def test_where_a_topic_is(pulsar: Standalone, exposed: Exposed) -> None:
    def play(url: str) -> None:
        name_of(url, fresh_topic())

    assert exposed(pulsar, play, "lookup that connects") >= {pulsar.host, f":{pulsar.port}"}
    assert exposed(pulsar, play) == set()


def test_who_else_may_know(modular: Cluster, exposed: Exposed) -> None:
    """Of topics that nobody has, one of the two brokers knows nothing."""

    def play(url: str) -> None:
        for _ in modular.brokers:
            name_of(url, fresh_topic(namespace=modular.fresh_namespace()))

    assert exposed(modular, play, "lookup that redirects") & hosts(modular)
    assert exposed(modular, play) == set()


def test_what_a_broker_says_of_a_topic_that_it_has_not(modular: Cluster, exposed: Exposed) -> None:
    namespace = modular.fresh_namespace()
    topics = {modular.owner(topic): topic for topic in topics_of(namespace)}
    one, other = topics.values()

    def play(url: str) -> None:
        with arrive(url, proxy_to_broker_url=name_of(url, one)) as client:
            refused = client.ask(Kind.PRODUCER, topic=other, producer_id=1, request_id=1)
        assert "not served by this instance" in refused.message

    assert exposed(modular, play, "text of ERROR") & hosts(modular)
    assert exposed(modular, play) == set()


def topics_of(namespace: str) -> list[str]:
    """Enough that both brokers have some."""
    return [fresh_topic(namespace=namespace) for _ in range(30)]


@pytest.mark.parametrize("kind", [Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER], ids=lambda it: it.name)
def test_where_a_topic_has_gone(extensible: Cluster, exposed: Exposed, kind: Kind) -> None:
    topic = fresh_topic(namespace=extensible.fresh_namespace())

    def play(url: str) -> None:
        with arrive(url, proxy_to_broker_url=name_of(url, topic)) as client:
            if kind is Kind.CLOSE_PRODUCER:
                client.ask(Kind.PRODUCER, topic=topic, producer_id=1, request_id=1)
            else:
                about = {"subscription": "s", "subType": 0}
                client.ask(Kind.SUBSCRIBE, topic=topic, consumer_id=1, request_id=1, **about)
            extensible.move(topic, extensible.other(extensible.owner(topic)))
            assert client.read().assignedBrokerServiceUrl

    assert exposed(extensible, play, f"fields of {kind.name}") & {
        it.host for it in extensible.brokers
    }
    assert exposed(extensible, play) == set()


def test_what_brokers_tell_each_other(extensible: Cluster, exposed: Exposed) -> None:
    extensible.owner(fresh_topic(namespace=extensible.fresh_namespace()))

    def play(url: str) -> None:
        with arrive(url, proxy_to_broker_url=name_of(url, BROKERS_OWN)) as client:
            about = {"subscription": secrets.token_hex(4), "subType": 0, "initialPosition": 1}
            client.say(Kind.SUBSCRIBE, topic=BROKERS_OWN, consumer_id=1, request_id=2, **about)
            client.say(Kind.FLOW, consumer_id=1, messagePermits=100)
            while BaseCommand.FromString(client._command()).type not in ANSWERS:
                pass

    leak = "topics of the brokers' own"
    assert exposed(extensible, play, leak, payloads=True) & hosts(extensible)
    assert exposed(extensible, play, payloads=True) == set()
