"""Clients in three languages whom the gateway verifies, and a real broker that decides by their
names what they may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from tests.clients.programs import Program
from tests.real.brokers.standalone import Standalone
from tests.real.fixtures import StartGateway, Tapped
from tests.real.frames import Kind, ServerError
from tests.real.gateways import Gateway, Plan, Plans
from tests.real.probes import figure
from tests.real.test_authentication import topic_for

from .conftest import Certificates, Files, Shown, Tokens, assert_moves_all

pytestmark = pytest.mark.gateway_only

PROXY, OUTER = "proxy", "outer"
"""A proxy role of the broker, which is the gateway's own name; and a gateway that this trusts."""

RULES = """
version: 1
rules: [{id: alice, match: {principal: alice}, allow: [produce, consume, lookup]}]
"""

REFUSED = {
    PROXY: (ServerError.AUTHORIZATION, "Invalid roles."),
    OUTER: (
        ServerError.AUTHENTICATION,
        "a proxy has to say who its client is, in original_principal",
    ),
}
"""What the broker says to its own proxies, and the gateway to its own, who name no client."""

GatewayWith = Callable[[str], Gateway]
"""Returns a gateway with an access."""


@pytest.fixture(scope="module", params=["token", "certificate"])
def shown(request: pytest.FixtureRequest, tokens: Tokens, certificates: Certificates) -> Shown:
    """Return what clients show to the gateway."""
    return tokens if request.param == "token" else certificates


@pytest.fixture(scope="module")
def gateway_with(
    shown: Shown,
    module_gateway: StartGateway,
    pulsar_auth: Standalone,
    plans: Plans,
    files: Files,
    tmp_path_factory: pytest.TempPathFactory,
) -> GatewayWith:
    """Return a function that returns gateways whose rule permits alice everything, each started at
    its first use."""
    rules = tmp_path_factory.mktemp("rules") / "access.yaml"
    rules.write_text(RULES)
    plan = replace(plan_for(shown, plans, files), unknown="mask", rules=rules)
    return cache(lambda access: module_gateway(pulsar_auth, replace(plan, access=access)))


def plan_for(shown: Shown, plans: Plans, files: Files) -> Plan:
    plan = plans.of("verify")
    ways, trusts = dict(plan.identity), {"trusted_proxies": [OUTER]}
    if isinstance(shown, Certificates):
        ways, plan = {"mode": "verify", "tls": {}}, replace(plan, tls=files.asking("required"))
    return replace(plan, identity=ways | trusts)


@dataclass(frozen=True)
class Entry:
    """Where clients enter."""

    gateway: Gateway
    url: str


EntryWith = Callable[[str], Entry]


@pytest.fixture
def entry_with(
    shown: Shown, gateway_with: GatewayWith, tapped: Tapped, pulsar_auth: Standalone
) -> EntryWith:
    """Return a function that returns the entry with an access. A tap cannot read TLS."""

    def entry(access: str) -> Entry:
        through = gateway_with(access)
        url = through.untapped_url
        if isinstance(shown, Tokens):
            url = tapped(url, pulsar_auth.traces).url
        return Entry(through, url)

    return entry


# -- what the broker permits -------------------------------------------------------------------


def test_a_client_with_rights_loses_nothing(
    client: Program, shown: Shown, entry_with: EntryWith, pulsar_auth: Standalone, logs: Path
) -> None:
    topic = topic_for(pulsar_auth, "alice", PROXY)
    assert_moves_all(shown.by(client, "alice"), entry_with("closed").url, logs, topic)


@pytest.mark.parametrize("access", ["open", "closed"])
def test_a_client_without_rights_fails(
    client: Program,
    shown: Shown,
    access: str,
    entry_with: EntryWith,
    pulsar_auth: Standalone,
    logs: Path,
) -> None:
    """The open gateway leaves it to the broker, the closed one refuses what the broker permits."""
    permitted = ["alice", PROXY] + ["eve"] * (access == "closed")
    topic, entry = topic_for(pulsar_auth, *permitted), entry_with(access)
    before = connections(entry.gateway), denials(entry.gateway)
    refused = shown.by(client, "eve")
    with refused.producing(entry.url, topic, 1, logs / "producer.log") as producer:
        assert "Authorization" in producer.refused()
    with refused.consuming(entry.url, topic, "s", 1, logs / "consumer.log") as consumer:
        assert "Authorization" in consumer.refused()
    tried, denied = connections(entry.gateway) - before[0], denials(entry.gateway) - before[1]
    assert (tried, denied) == (2, 2 * (access == "closed")), "a client tried again"


def connections(gateway: Gateway) -> float:
    return figure(gateway, "gateway_connections_accepted_total")


def denials(gateway: Gateway) -> float:
    return figure(gateway, "gateway_access_denied_total")


# -- those who claim to speak for others -------------------------------------------------------


@pytest.mark.parametrize("role", [PROXY, OUTER])
def test_the_credential_of_a_proxy_admits_no_client(
    shown: Shown, role: str, entry_with: EntryWith
) -> None:
    """The broker refuses its own proxy role, and the gateway the one that it trusts."""
    answer = shown.answer(entry_with("open").url, role)
    assert answer.kind == Kind.ERROR
    assert (answer.fields[2], answer.text(3)) == REFUSED[role]


@pytest.mark.parametrize("name", ["alice", "eve", "admin", PROXY, OUTER])
def test_a_client_speaks_for_nobody(shown: Shown, name: str, entry_with: EntryWith) -> None:
    """Not even for herself."""
    answer = shown.answer(entry_with("open").url, "alice", original_principal=name)
    assert answer.kind == Kind.ERROR
    assert answer.fields[2] == ServerError.AUTHENTICATION
    assert answer.text(3) == "original_principal is not accepted here"


def test_a_trusted_proxy_speaks_for_clients_alone(shown: Shown, entry_with: EntryWith) -> None:
    url = entry_with("open").url
    assert shown.answer(url, OUTER, original_principal="alice").kind == Kind.CONNECTED
    for role, refused in REFUSED.items():
        answer = shown.answer(url, OUTER, original_principal=role)
        assert answer.kind == Kind.ERROR
        assert (answer.fields[2], answer.text(3)) == refused
