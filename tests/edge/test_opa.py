"""Open Policy Agent decides what clients may open, and a stated answer does while it is away."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn
from tests.real.brokers.tokens import Authority
from tests.real.clients import EARLIEST, RECEIVE_MS, fresh_topic
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import Gateway, Plans
from tests.real.probes import figure
from tests.support.agent import HOST, Agent, serving
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

ROOT = Path(__file__).resolve().parents[2]

POLICY = """
package gateway

default allow := false

allow if {
    input.principal == "alice"
    input.namespace == "public/default"
    input.action in {"lookup", "produce", "consume"}
}

allow if {
    input.principal == "bob"
    input.action in {"lookup", "consume"}
    startswith(input.topic, "persistent://public/default/")
}
"""

Asking = Callable[[str], Gateway]


@pytest.fixture
def asking(
    gateway: StartGateway, plans: Plans, sandbox_auth: Sandbox, tmp_path: Path
) -> Callable[..., Gateway]:
    """Start a gateway that asks the agent at a URL, with these rules and settings of `opa`."""

    def start(url: str, rules: str = "", **settings: Any) -> Gateway:
        if rules:
            (tmp_path / "rules.yaml").write_text(f"{{version: 1, rules: {rules}}}")
        plan = replace(
            plans.of("verify"),
            rules=tmp_path / "rules.yaml" if rules else None,
            access="opa",
            unknown="mask",
            more={"opa": {"url": url, **settings}},
        )
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


@contextmanager
def policy_agent(folder: Path) -> Iterator[str]:
    """Run Open Policy Agent with `POLICY`; yield the URL of its rule."""
    binary = shutil.which("opa") or shutil.which("opa", path=ROOT / "build" / "tools")
    if binary is None:
        pytest.skip("needs opa: go install github.com/open-policy-agent/opa@v1.22.2")
    (folder / "policy.rego").write_text(POLICY)
    (port,) = free_ports(HOST, 1)
    address = f"{HOST}:{port}"
    command = [binary, "run", "--server", "--addr", address, "--disable-telemetry", "policy.rego"]
    process = spawn(command, folder / "opa.log")
    try:
        _await_health(f"http://{address}/health")
        yield f"http://{address}/v1/data/gateway/allow"
    finally:
        end(process, 5.0)


def _await_health(url: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=60).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
        else:
            return
    pytest.fail("Open Policy Agent did not start")


def test_a_real_agent_decides(asking: Asking, client_of: ClientOf, tmp_path: Path) -> None:
    with policy_agent(tmp_path) as url:
        through, topic = asking(url), fresh_topic()
        alice, bob, eve = (client_of(through, name) for name in ("alice", "bob", "eve"))
        consumer = bob.subscribe(topic, "s", initial_position=EARLIEST)
        producer = alice.create_producer(topic)
        for number in range(100):
            producer.send(b"%d" % number)
        assert [consumer.receive(RECEIVE_MS).data() for _ in range(100)] == [
            b"%d" % number for number in range(100)
        ]
        with pytest.raises(client_library.AuthorizationError):
            bob.create_producer(topic)
        with pytest.raises(client_library.AuthorizationError):
            eve.subscribe(topic, "s")
        counted = {"listener": "clients", "rule": "(opa)", "right": "produce", "mode": "enforce"}
        assert figure(through, "gateway_access_denied_total", **counted) >= 1


def test_rules_decide_before_the_agent(asking: Callable[..., Gateway], client_of: ClientOf) -> None:
    agent, topic = Agent(lambda asked: asked["principal"] == "alice"), fresh_topic()
    rules = json.dumps(
        [
            {"id": "no", "match": {"topic": topic}, "deny": "produce"},
            {"id": "bob", "match": {"principal": "bob"}, "allow": "consume"},
        ]
    )
    with serving(agent):
        through = asking(agent.url, rules)
        with pytest.raises(client_library.AuthorizationError):
            client_of(through, "alice").create_producer(topic)
        client_of(through, "bob").subscribe(topic, "s")
        assert "bob" not in {asked["principal"] for asked in agent.asked}


def test_while_the_agent_is_away_nothing_new_opens_and_what_is_open_goes_on(
    asking: Callable[..., Gateway], client_of: ClientOf
) -> None:
    agent, topic = Agent(lambda _: True), fresh_topic()
    with serving(agent):
        through = asking(agent.url, lasting="1s")
        alice = client_of(through, "alice")
        consumer = alice.subscribe(topic, "s", initial_position=EARLIEST)
        producer = alice.create_producer(topic)
        agent.status = 500
        with pytest.raises(client_library.AuthorizationError):
            alice.create_producer(fresh_topic())
        producer.send(b"still")
        assert consumer.receive(RECEIVE_MS).data() == b"still"
        agent.status = 200
        time.sleep(1.1)  # after a failure it is not asked for a second
        alice.create_producer(fresh_topic()).send(b"again")
    assert "policy_agent_unavailable" in through.log.read_text()
    assert "policy_agent_back" in through.log.read_text()


def test_a_slow_agent_makes_openings_slow_and_nothing_else(
    asking: Callable[..., Gateway], client_of: ClientOf
) -> None:
    agent, topic = Agent(lambda _: True), fresh_topic()
    with serving(agent):
        through = asking(agent.url, deadline="5s", lasting="1m")
        alice = client_of(through, "alice")
        producer = alice.create_producer(topic)
        agent.may_answer.clear()
        with ThreadPoolExecutor(1) as elsewhere:
            opening = elsewhere.submit(alice.create_producer, fresh_topic())
            for _ in range(100):
                producer.send(b"meanwhile")
            assert not opening.done()
            agent.may_answer.set()
            opening.result(20).send(b"open")
