"""Clients get names in place of brokers. (Every scene's tap checks that nothing that its clients
read reveals the broker.)"""

from __future__ import annotations

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.brokers.standalone import Standalone
from tests.real.clients import Client, numbered, payloads, receive, send_all
from tests.real.fixtures import Connect, Route
from tests.real.frames import Connection, Kind
from tests.real.probes import lookup, name_in
from tests.real.test_hiding import assert_refused

pytestmark = pytest.mark.gateway_only


def test_nothing_that_clients_read_names_a_broker(
    client: Client, route: Route, connect: Connect, topic: str
) -> None:
    """Neither answers nor errors do. All goes by two connections, one for lookups and one for the
    work, both to the gateway."""
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(10))
    assert payloads(receive(consumer, 10)) == numbered(10)
    with pytest.raises(client_library.ConsumerBusy):
        client.subscribe(topic, "s")
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer("persistent://public/functions/t")
    assert route.tap is not None
    assert len(route.tap.recordings) == 2
    assert route.tap.commands(Kind.LOOKUP_RESPONSE)
    assert route.tap.leaks(route.broker.traces) == []


def test_a_lookup_is_answered_with_a_name_that_leads_back(route: Route, topic: str) -> None:
    answer = lookup(route.url, topic, route.token)
    response_connect, proxy_through_service_url = answer.fields[3], answer.fields[8]
    assert (response_connect, proxy_through_service_url) == (1, 1)
    assert answer.text(1).startswith("pulsar://")


def test_a_name_leads_to_its_broker(route: Route, topic: str) -> None:
    assert route.token is not None
    name = name_in(lookup(route.url, topic, route.token))
    with Connection(route.url) as connection:
        answer = connection.connect(route.token, proxy_to_broker_url=name)
    assert answer
    assert answer.kind == Kind.CONNECTED


def test_a_plain_address_is_refused(route: Route, pulsar_auth: Standalone) -> None:
    """This includes the right address: clients cannot use the gateway to reach brokers that it did
    not name."""
    assert route.token is not None
    for address in (
        f"{pulsar_auth.host}:{pulsar_auth.port}",
        f"{pulsar_auth.host}:{pulsar_auth.web_port}",
        "localhost:22",
        "x",
        ":",
        "[::1]:1",
    ):
        assert_refused(route.url, address, route.token)
