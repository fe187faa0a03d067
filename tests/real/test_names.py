"""The names of brokers over time: rotated keys, restarted gateways, readable names.

`test_hiding.py` tests the form of sealed names, and that they cannot be forged.
"""

import secrets
from pathlib import Path

import pytest

from .brokers.cluster import Cluster
from .brokers.standalone import Standalone
from .clients import fresh_topic, numbered, receive_all_of, send_all, wait_until
from .fixtures import Connect, Reach, Route
from .frames import Command, Connection, Kind, ServerError
from .gateways import Plan, sealed_by
from .metrics import scrape, total

pytestmark = pytest.mark.gateway_only

TOKEN = "these brokers do not look at it"
RECONNECT_SECONDS = 30


def name_in_answer(url: str, topic: str) -> str:
    """Return the broker that a lookup names, as a client sends it back: name and port."""
    with Connection(url) as connection:
        connection.connect(TOKEN)
        answer = connection.lookup(topic)
    assert answer
    assert answer.kind == Kind.LOOKUP_RESPONSE
    assert answer.text(1) == answer.text(2)
    return answer.text(1).removeprefix("pulsar://")


def answer_to(url: str, name: str) -> Command:
    """Return the answer to a CONNECT to the broker of this name."""
    with Connection(url) as connection:
        answer = connection.connect(TOKEN, proxy_to_broker_url=name)
    assert answer
    return answer


def opens(url: str, name: str) -> bool:
    answer = answer_to(url, name)
    if answer.kind == Kind.CONNECTED:
        return True
    assert (answer.kind, answer.text(3)) == (Kind.ERROR, "unknown broker name")
    return False


def refused(route: Route) -> float:
    """Return the number of connections that the gateway ended because it could not open a name or
    would not dial it."""
    assert route.gateway
    exposition = scrape(route.gateway.metrics_url)
    return total(exposition, "gateway_connections_ended_total", reason="target_refused")


# --- keys ----------------------------------------------------------------------------------------


def new_key(path: Path) -> Path:
    path.write_bytes(secrets.token_bytes(32))
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return new_key(tmp_path / "old.key")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return new_key(tmp_path / "new.key")


def test_keys_are_rotated_step_by_step(
    pulsar: Standalone, reach: Reach, old: Path, new: Path
) -> None:
    """Replicas may be one step apart: each opens the names that the previous and the next one
    seal."""
    steps = [(old,), (old, new), (new, old), (new,)]
    routes = [reach(pulsar, Plan(names=sealed_by(*keys))) for keys in steps]
    names = [name_in_answer(route.url, fresh_topic()) for route in routes]
    assert names[0] == names[1] != names[2] == names[3]
    assert [[opens(route.url, name) for name in names] for route in routes] == [
        [True, True, False, False],
        [True, True, True, True],
        [True, True, True, True],
        [False, False, True, True],
    ]
    assert [refused(route) for route in routes] == [2, 0, 0, 2]


@pytest.mark.parametrize("rotated", [False, True], ids=["same key", "rotated key"])
def test_names_outlive_their_gateway(
    pulsar: Standalone, reach: Reach, connect: Connect, old: Path, new: Path, rotated: bool
) -> None:
    """Its keys are in files, so its clients come back by the names they know."""
    route = reach(pulsar, Plan(names=sealed_by(old, new)))
    name = name_in_answer(route.url, fresh_topic())
    topic = fresh_topic()
    client = connect(route.url)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    send_all(producer, numbered(10))
    assert route.gateway
    route.gateway.stop()
    if rotated:
        key = old.read_bytes()
        old.write_bytes(new.read_bytes())
        new.write_bytes(key)
    route.gateway.start()
    assert opens(route.url, name)
    wait_until(producer.is_connected, RECONNECT_SECONDS)
    send_all(producer, numbered(10, start=10))
    receive_all_of(consumer, numbered(20))
    assert refused(route) == 0
    assert (name_in_answer(route.url, topic) == name) is not rotated


# --- readable names ------------------------------------------------------------------------------


def readable(port: int) -> Plan:
    """Return a plan that names 127.0.0.78 broker-78.example."""
    template = {"advertise": "broker-{n}.example", "broker": f"127.0.0.{{n}}:{port}"}
    return Plan(names={"template": template})


def test_names_may_be_readable(modular: Cluster, reach: Reach, connect: Connect) -> None:
    route = reach(modular, readable(modular.port))
    client = connect(route.url)
    shown = {}
    for broker in modular.brokers:
        topic = fresh_topic(namespace=modular.fresh_namespace())
        modular.place(topic, broker)
        consumer = client.subscribe(topic, "s")
        send_all(client.create_producer(topic), numbered(3))
        receive_all_of(consumer, numbered(3))
        shown[broker.host] = name_in_answer(route.url, topic)
    assert shown == {
        "127.0.0.78": "broker-78.example:6650",
        "127.0.0.79": "broker-79.example:6650",
    }


def test_a_readable_name_leads_only_to_targets(pulsar: Standalone, reach: Reach) -> None:
    """Unlike a sealed name, it can be invented."""
    route = reach(pulsar, readable(pulsar.port))
    assert opens(route.url, "broker-77.example:6650")
    answer = answer_to(route.url, "broker-1.example:6650")
    assert (answer.kind, answer.fields[2]) == (Kind.ERROR, ServerError.NOT_ALLOWED)
    assert not opens(route.url, "broker-300.example.org:6650")
    assert refused(route) == 2
