"""Gateways stop and start, and topics are unloaded, while clients produce and consume. Clients go
on by themselves, and no message is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.programs import Program
from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import Client, wait_until
from tests.real.fixtures import Connect, Reach, Route, StartGateway, Tapped
from tests.shared.rolled import INTERVAL_MS, Rolled, in_front_of
from tests.shared.test_drain import Load

from .bounds import PATIENCE
from .conftest import USER

MORE = 200
"""Messages that have to pass before and after a disturbance."""
UNLOADS = 3


@contextmanager
def loaded(client: Client, topic: str) -> Iterator[Load]:
    """Yield clients that produce and consume; in the end all has arrived."""
    load = Load(client, topic)
    try:
        await_more(load)
        yield load
        await_more(load)
    finally:
        load.finish()


def await_more(load: Load) -> None:
    """Return when more messages were sent, stored and received."""
    sent, received = load.sent + MORE, len(load.ids) + MORE
    wait_until(lambda: len(load.acknowledged) >= sent and len(load.ids) >= received, PATIENCE)


def assert_in_order(load: Load) -> None:
    assert load.acknowledged == list(range(load.sent))
    assert list(dict.fromkeys(load.received)) == list(range(load.sent))


@pytest.fixture
def pair(
    pulsar_auth: Standalone, gateway: StartGateway, tapped: Tapped, tmp_path: Path
) -> Iterator[Rolled]:
    """Yield two gateways behind one address. All clients are at the first one while it serves."""
    with in_front_of(pulsar_auth, gateway, tapped, tmp_path) as them:
        yield them


@pytest.mark.gateway_only
def test_clients_of_a_gateway_that_stops_move_to_another_one(
    pair: Rolled, connect: Connect, authority: Authority, topic: str
) -> None:
    """No message is stored twice, either."""
    with loaded(connect(pair.url, authority.token(USER), PATIENCE), topic) as load:
        pair.gateways[0].stop()
    load.assert_exact()
    assert_in_order(load)
    assert pair.ended() <= {"client_closed", "broker_closed", "drained"}


@pytest.mark.gateway_only
def test_java_clients_of_a_gateway_that_stops_move_to_another_one(
    pair: Rolled, java: Program, pulsar_auth: Standalone, topic: str, logs: Path
) -> None:
    with (
        java.consuming(pair.url, topic, "s", 0, logs / "consumer.log") as consuming,
        java.producing(
            pair.url, topic, 0, logs / "producer.log", interval_ms=INTERVAL_MS, batch=True
        ) as producing,
    ):
        consuming.await_ready()
        producing.await_ready()
        await_stored(pulsar_auth, topic)
        pair.gateways[0].stop()
        await_stored(pulsar_auth, topic)
        producing.tell_to_stop()
        sent = producing.sent()
        wait_until(lambda: has_no_backlog(pulsar_auth, topic), PATIENCE)
        consuming.tell_to_stop()
        received = consuming.received()
    assert (sent.errors, received.errors) == ((), ())
    assert sent.acknowledged == received.received == set(range(len(sent.acknowledged)))
    assert (received.stored_twice, received.out_of_order) == (0, 0)


def await_stored(broker: Standalone, topic: str) -> None:
    """Return when more messages were stored."""
    wanted = broker.admin.stats(topic)["msgInCounter"] + MORE
    wait_until(lambda: broker.admin.stats(topic)["msgInCounter"] >= wanted, PATIENCE)


def has_no_backlog(broker: Standalone, topic: str) -> bool:
    backlogs = [it["msgBacklog"] for it in broker.admin.stats(topic)["subscriptions"].values()]
    return backlogs == [0]


@pytest.mark.gateway_only
def test_clients_come_back_to_a_new_gateway(
    pulsar_auth: Standalone, reach: Reach, connect: Connect, authority: Authority, topic: str
) -> None:
    """The new gateway has another key and cannot open the clients' names, so they must look up
    again."""
    route = reach(pulsar_auth)
    assert route.gateway is not None
    client = connect(route.url, authority.token(USER), PATIENCE)
    with loaded(client, topic) as load:
        route.gateway.stop()
        route.gateway.start()
    load.assert_exact()
    assert_in_order(load)


def test_clients_go_on_when_their_topic_is_unloaded(
    client: Client, route: Route, topic: str
) -> None:
    """A broker may store messages twice meanwhile, of clients without a gateway too."""
    with loaded(client, topic) as load:
        for _ in range(UNLOADS):
            route.broker.admin.unload(topic)
            await_more(load)
    load.assert_complete()
