"""The names that clients get in place of brokers, and what they can do with them. (Every test's tap
checks that nothing else reveals brokers.)"""

import secrets
from pathlib import Path

import pytest

from .brokers.standalone import Standalone
from .clients import fresh_topic, numbered, payloads, receive, send_all
from .fixtures import Connect, Reach, Route
from .frames import Connection, Kind, ServerError
from .gateways import Plan
from .probes import TOKEN, lookup, name_in

pytestmark = pytest.mark.gateway_only


def sealed_name(url: str) -> str:
    return name_in(lookup(url, fresh_topic()))


def test_a_name_has_a_form_that_all_clients_can_send_back(route: Route) -> None:
    """Java parses no host with an underscore or with a last label that begins with a digit; labels
    have 63 characters at most."""
    host = sealed_name(route.url).rpartition(":")[0]
    assert host == host.lower()
    assert all(
        1 <= len(label) <= 63 and label.replace("-", "").isalnum() for label in host.split(".")
    )
    assert host.rpartition(".")[2][0].isalpha()


def test_a_broker_always_has_the_same_name(route: Route) -> None:
    assert len({sealed_name(route.url) for _ in range(3)}) == 1


def changed(name: str, at: int) -> str:
    return name[:at] + ("a" if name[at] != "a" else "b") + name[at + 1 :]


@pytest.mark.parametrize("at", [0, 5, 20])
def test_a_changed_name_leads_nowhere(route: Route, at: int) -> None:
    assert_refused(route.url, changed(sealed_name(route.url), at))


def assert_refused(url: str, name: str, token: str = TOKEN) -> None:
    with Connection(url) as connection:
        answer = connection.connect(token, proxy_to_broker_url=name)
        assert answer is None or answer.kind == Kind.ERROR, name
        assert answer is None or connection.receive() is None, f"{name}: still open"


@pytest.fixture
def replicas(pulsar: Standalone, reach: Reach, tmp_path: Path) -> tuple[Route, Route]:
    """Return routes by two gateways with the same key."""
    key = tmp_path / "names.key"
    key.write_bytes(secrets.token_bytes(32))
    return reach(pulsar, Plan(key=key)), reach(pulsar, Plan(key=key))


def test_replicas_with_one_key_agree_on_names(replicas: tuple[Route, Route]) -> None:
    one, other = replicas
    name = sealed_name(one.url)
    assert sealed_name(other.url) == name
    with Connection(other.url) as connection:
        answer = connection.connect(TOKEN, proxy_to_broker_url=name)
    assert answer
    assert answer.kind == Kind.CONNECTED


def test_a_name_of_another_key_leads_nowhere(route: Route, replicas: tuple[Route, Route]) -> None:
    assert_refused(route.url, sealed_name(replicas[0].url))


def test_a_masking_gateway_still_serves_known_commands(
    pulsar: Standalone, reach: Reach, connect: Connect
) -> None:
    client = connect(reach(pulsar, Plan(unknown="mask")).url)
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic, batching_enabled=True), numbered(100))
    assert payloads(receive(consumer, 100)) == numbered(100)


def test_the_brokers_own_topics_are_closed_to_clients(route: Route) -> None:
    """They hold load reports with the addresses of brokers."""
    topic = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
    with Connection(route.url) as connection:
        connection.connect(TOKEN)
        connection.send(Kind.PRODUCER, {1: topic, 2: 1, 3: 7})
        answer = connection.receive()
    assert answer
    assert (answer.kind, answer.fields[1], answer.fields[2]) == (
        Kind.ERROR,
        7,
        ServerError.AUTHORIZATION,
    )
