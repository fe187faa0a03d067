"""What real brokers reveal of themselves: a tap finds it as soon as the gateway does not hide it.

`tests/shared/test_leaks.py` has each kind of leak, including those that real brokers rarely show.
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
"""The owner of each bundle."""

ANSWERS = BaseCommand.MESSAGE, BaseCommand.ERROR


def arrive(url: str, **connect: str) -> Peer:
    peer = Peer(url.removeprefix("pulsar://"))
    peer.connect(**connect)
    return peer


def name_of(url: str, topic: str) -> str:
    """Return the name of a topic's broker."""
    with arrive(url) as client:
        answer = client.ask(Kind.LOOKUP, topic=topic, request_id=1, authoritative=False)
    named: str = answer.brokerServiceUrl
    return named.removeprefix("pulsar://")


def hosts(cluster: Cluster) -> set[str]:
    return {broker.host for broker in cluster.brokers}


def test_the_owner_of_a_topic_is_hidden(pulsar: Standalone, exposed: Exposed) -> None:
    def play(url: str) -> None:
        name_of(url, fresh_topic())

    assert exposed(pulsar, play, "lookup that connects") >= {pulsar.host, f":{pulsar.port}"}
    assert exposed(pulsar, play) == set()


def test_the_brokers_of_a_redirect_are_hidden(modular: Cluster, exposed: Exposed) -> None:
    """One of the two brokers knows nothing of an unassigned topic, and redirects."""

    def play(url: str) -> None:
        for _ in modular.brokers:
            name_of(url, fresh_topic(namespace=modular.fresh_namespace()))

    assert exposed(modular, play, "lookup that redirects") & hosts(modular)
    assert exposed(modular, play) == set()


def test_a_broker_s_error_about_a_foreign_topic_is_cleaned(
    modular: Cluster, exposed: Exposed
) -> None:
    one, other = (fresh_topic(namespace=modular.fresh_namespace()) for _ in range(2))
    for topic, broker in zip((one, other), modular.brokers, strict=True):
        modular.place(topic, broker)

    def play(url: str) -> None:
        with arrive(url, proxy_to_broker_url=name_of(url, one)) as client:
            refused = client.ask(Kind.PRODUCER, topic=other, producer_id=1, request_id=1)
        assert "not served by this instance" in refused.message

    assert exposed(modular, play, "text of ERROR") & hosts(modular)
    assert exposed(modular, play) == set()


@pytest.mark.parametrize("kind", [Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER], ids=lambda it: it.name)
def test_the_new_owner_of_a_moved_topic_is_hidden(
    extensible: Cluster, exposed: Exposed, kind: Kind
) -> None:
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


def test_the_brokers_own_messages_are_hidden(extensible: Cluster, exposed: Exposed) -> None:
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
