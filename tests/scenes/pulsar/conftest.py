"""One broker for all scenes. It asks for tokens, so that it can tell whom a gateway vouches for.

Most scenes share a gateway that passes tokens through. Those about rights and limits share one that
verifies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.clients.builders import java_client
from tests.clients.programs import Program
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority, KeyPair
from tests.real.clients import Client, fresh_topic
from tests.real.fixtures import GATEWAY, Connect, GatewayOfMode, Reach, Route, or_skip
from tests.real.gateways import Gateway, Plans, verifying
from tests.real.test_authentication import namespace_for

from .bounds import PATIENCE, PROGRAM_SECONDS

USER, PROXY = "user", "proxy"
"""Of most scenes, and a gateway that vouches for clients."""

RULES = """
version: 1
rules:
  - {id: users, match: {principal: [alice, bob]}, allow: [produce, consume]}
  - {id: secret, match: {topic: "secret*"}, deny: [produce, consume, lookup]}
  - id: few
    match: {topic: "few*"}
    limit: {publish: {messages: 40/s}}
    burst: 1
    per: topic
  - id: slow
    match: {topic: "slow*"}
    limit: {dispatch: {messages: 40/s}}
    burst: 1
    per: topic
"""
"""Of the gateway that verifies tokens."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/scenes/pulsar/"):
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def namespace(pulsar_auth: Standalone) -> str:
    """Return a namespace that most scenes use."""
    return namespace_for(pulsar_auth, USER, "alice", PROXY)


@pytest.fixture
def topic(namespace: str) -> str:
    return fresh_topic(namespace=namespace)


# -- where tokens pass through -----------------------------------------------------------------


@pytest.fixture
def route(
    way: str,
    reach: Reach,
    pulsar_auth: Standalone,
    gateway_of_mode: GatewayOfMode,
    authority: Authority,
) -> Route:
    through = gateway_of_mode(pulsar_auth, "pass-through") if way == GATEWAY else None
    return replace(reach(pulsar_auth, through=through), token=authority.token(USER))


@pytest.fixture
def client(route: Route, connect: Connect) -> Client:
    return connect(route.url, route.token, PATIENCE)


@pytest.fixture
def java(say: Say, authority: Authority) -> Program:
    """Return the client in Java, with the user's token."""
    return replace(or_skip(java_client, say), limit=PROGRAM_SECONDS, token=authority.token(USER))


# -- where the gateway verifies them -----------------------------------------------------------


@pytest.fixture(scope="session")
def issuer() -> KeyPair:
    """Return who signs the clients' tokens. The broker does not know it."""
    return KeyPair()


@pytest.fixture(scope="session")
def verifying_gateway(
    pulsar_auth: Standalone,
    issuer: KeyPair,
    plans: Plans,
    artifacts: Artifacts,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("verifying")
    public, rules = issuer.write_public(folder / "public.pem"), folder / "rules.yaml"
    rules.write_text(RULES)
    plan = verifying(plans.credential, public_key_file=str(public), algorithms=["RS256"])
    plan = replace(plan, access="closed", unknown="mask", rules=rules)
    shared = Gateway(pulsar_auth, plan, artifacts.directory("gateway-verifying"))
    shared.start()
    yield shared
    shared.stop()


@pytest.fixture
def verified(reach: Reach, pulsar_auth: Standalone, verifying_gateway: Gateway) -> Route:
    """Return the route by the gateway that verifies tokens."""
    return reach(pulsar_auth, through=verifying_gateway)


ClientOf = Callable[[str], Client]


@pytest.fixture
def client_of(verified: Route, connect: Connect, issuer: KeyPair) -> ClientOf:
    """Return a function that opens clients of that gateway by name."""
    return lambda name: connect(verified.url, issuer.token(name), PATIENCE)
