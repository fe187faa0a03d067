"""Credentials that expire while clients use them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.clients.programs import Program
from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import EARLIEST, fresh_topic, payloads, receive, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import Plans
from tests.real.metrics import scrape, total
from tests.real.probes import figure
from tests.real.test_authentication import topic_for
from tests.support.sandbox import Sandbox

from .conftest import assert_moves_all, renewed

pytestmark = pytest.mark.gateway_only

LIFETIME = 2
"""Seconds that a token is valid."""

LIVES = 3
"""Lifetimes for which a producer sends."""

INTERVAL_MS = 20
FAILED = {"listener": "clients", "reason": "authentication_failed"}


def test_a_client_shows_newer_tokens_while_it_produces(
    sandbox_auth: Sandbox,
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    connect: Connect,
    authority: Authority,
) -> None:
    plan = replace(plans.of("verify"), deadlines={"expired": "500ms"})
    through = gateway(sandbox_auth, plan)
    shown: list[str] = []

    def supply() -> str:
        shown.append(authority.token("alice", LIFETIME))
        return shown[-1]

    client = connect(reach(sandbox_auth, through=through).url, supply)
    topic = fresh_topic()
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic)
    opened = figure(through, "gateway_connections_accepted_total", listener="clients")
    ends, sent = time.monotonic() + LIVES * LIFETIME, list[bytes]()
    while time.monotonic() < ends:
        sent.append(str(len(sent)).encode())
        producer.send(sent[-1])
        time.sleep(0.02)
    assert payloads(receive(consumer, len(sent))) == sent
    assert figure(through, "gateway_connections_accepted_total", listener="clients") == opened
    assert len(shown) > LIVES


def test_no_client_loses_messages_while_it_shows_newer_tokens(
    client: Program,
    pulsar_auth: Standalone,
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    authority: Authority,
    tmp_path: Path,
    logs: Path,
) -> None:
    plan = replace(plans.of("verify"), deadlines={"expired": "500ms"})
    through = gateway(pulsar_auth, plan)
    url = reach(pulsar_auth, through=through).url
    topic = topic_for(pulsar_auth, "alice", "proxy")
    count = LIVES * LIFETIME * 1000 // INTERVAL_MS
    with renewed(tmp_path / "token", lambda: authority.token("alice", LIFETIME), 0.2) as file:
        client = replace(client, token_file=file)
        assert_moves_all(client, url, logs, topic, count=count, interval_ms=INTERVAL_MS)
    found = scrape(through.metrics_url)
    by_clients = total(found, "gateway_connections_ended_total", reason="client_closed")
    assert total(found, "gateway_connections_ended_total") == by_clients


def test_a_client_without_a_newer_token_is_closed(
    sandbox_auth: Sandbox,
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    connect: Connect,
    authority: Authority,
) -> None:
    plan = replace(plans.of("verify"), deadlines={"expired": "500ms"})
    through = gateway(sandbox_auth, plan)
    token = authority.token("alice", LIFETIME)
    client = connect(reach(sandbox_auth, through=through).url, token)
    producer = client.create_producer(fresh_topic(), send_timeout_millis=1000)
    wait_until(lambda: figure(through, "gateway_connections_ended_total", **FAILED) > 0)
    with pytest.raises(client_library.PulsarException):
        producer.send(b"too late")
