"""Rules of rights with real clients: what is allowed works, and the rest is refused at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.brokers.tokens import Authority
from tests.real.clients import EARLIEST, RECEIVE_MS, fresh_topic, wait_until
from tests.real.fixtures import Connect, GatewayOfMode, Reach, StartGateway
from tests.real.gateways import Gateway, Plans
from tests.real.probes import figure
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

Rule = dict[str, Any]

ALICE: Rule = {
    "id": "alice",
    "match": {"principal": "alice", "namespace": "public/default", "topic": "open*"},
    "allow": ["produce", "consume"],
}
BOB: Rule = {"id": "bob", "match": {"principal": "bob", "topic": "open*"}, "allow": "consume"}
SECRET: Rule = {"id": "secret", "match": {"topic": "*secret*"}, "deny": ["produce", "lookup"]}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Return the file of the rules in force."""
    (tmp_path / "rules").mkdir()
    return tmp_path / "rules" / "access.yaml"


def write(file: Path, *rules: Rule) -> None:
    file.write_text(json.dumps({"version": 1, "rules": rules}))


Begin = Callable[..., Gateway]


@pytest.fixture
def begin(gateway: StartGateway, plans: Plans, rules: Path, sandbox_auth: Sandbox) -> Begin:
    """Start a gateway that verifies tokens, with these rules."""

    def start(*given: Rule, access: str = "closed") -> Gateway:
        write(rules, *given)
        plan = replace(plans.of("verify"), rules=rules.parent, access=access, unknown="mask")
        return gateway(sandbox_auth, plan)

    return start


@pytest.fixture
def client_of(
    sandbox_auth: Sandbox, reach: Reach, connect: Connect, authority: Authority
) -> Callable[[Gateway, str], client_library.Client]:
    def client(through: Gateway, name: str) -> client_library.Client:
        return connect(reach(sandbox_auth, through=through).url, authority.token(name))

    return client


ClientOf = Callable[[Gateway, str], client_library.Client]


def open_topic() -> str:
    return fresh_topic().replace("default/", "default/open-")


def test_what_is_allowed_works_and_the_rest_is_refused(begin: Begin, client_of: ClientOf) -> None:
    gateway, topic = begin(ALICE, BOB, SECRET), open_topic()
    alice, bob, eve = (client_of(gateway, name) for name in ("alice", "bob", "eve"))
    consumer = bob.subscribe(topic, "s", initial_position=EARLIEST)
    alice.create_producer(topic).send(b"hello")
    assert consumer.receive(RECEIVE_MS).data() == b"hello"
    refused = [(bob, topic), (eve, topic), (alice, fresh_topic()), (alice, f"{topic}-secret")]
    for client, name in refused:
        with pytest.raises(client_library.AuthorizationError):
            client.create_producer(name)
    with pytest.raises(client_library.AuthorizationError):
        eve.subscribe(topic, "s")
    counted = {"listener": "clients", "rule": "secret", "right": "lookup", "mode": "enforce"}
    assert figure(gateway, "gateway_access_denied_total", **counted) >= 1


def test_a_pattern_finds_the_topics_that_a_client_may_look_up(
    begin: Begin, client_of: ClientOf, sandbox_auth: Sandbox, gateway_of_mode: GatewayOfMode
) -> None:
    gateway = begin(ALICE, BOB, SECRET)
    without_rules = gateway_of_mode(sandbox_auth, "verify")
    alice, bob = client_of(gateway, "alice"), client_of(gateway, "bob")
    base = open_topic()
    alice.create_producer(f"{base}-a").send(b"seen")
    client_of(without_rules, "root").create_producer(f"{base}-secret").send(b"unseen")
    pattern = re.compile(re.escape(base) + ".*")
    consumer = bob.subscribe(pattern, "s", initial_position=EARLIEST)
    assert consumer.receive(RECEIVE_MS).data() == b"seen"
    with pytest.raises(client_library.Timeout):
        consumer.receive(1000)


def test_a_revoked_right_closes_what_was_opened_with_it(
    begin: Begin, client_of: ClientOf, rules: Path
) -> None:
    gateway, topic = begin(ALICE, BOB), open_topic()
    alice, bob = client_of(gateway, "alice"), client_of(gateway, "bob")
    consumer = bob.subscribe(topic, "s", initial_position=EARLIEST)
    producer = alice.create_producer(topic)
    producer.send(b"before")
    assert consumer.receive(RECEIVE_MS).data() == b"before"
    write(rules, ALICE)
    wait_until(lambda: figure(gateway, "gateway_rules_generation") == 2)
    wait_until(lambda: not figures_of_consumers(gateway, topic))
    producer.send(b"after")
    with pytest.raises(client_library.Timeout):
        consumer.receive(1000)
    with pytest.raises(client_library.AuthorizationError):
        bob.subscribe(topic, "other")


def figures_of_consumers(gateway: Gateway, topic: str) -> float:
    return figure(gateway, "gateway_topic_consumers", topic=topic)


def test_a_shadow_counts_what_it_would_deny(begin: Begin, client_of: ClientOf) -> None:
    gateway, topic = begin(ALICE, access="shadow"), fresh_topic()
    client_of(gateway, "eve").create_producer(topic).send(b"passes")
    counted = {"listener": "clients", "rule": "", "right": "produce", "mode": "shadow"}
    assert figure(gateway, "gateway_access_denied_total", **counted) >= 1
