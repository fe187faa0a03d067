"""The PROXY protocol with a real HAProxy on either side of the gateway, and with a real broker."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode, kind_of
from tests.clients.builders import python_client
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say, tool
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail
from tests.real.brokers.standalone import HOST as BROKER_HOST
from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority
from tests.real.clients import RECEIVE_MS, Client, assert_works, fresh_topic, wait_until
from tests.real.fixtures import Connect, StartBroker, StartGateway, Tapped, or_skip
from tests.real.gateways import HOST, PASS_THROUGH, Gateway, Plan, Plans
from tests.real.probes import figure
from tests.support.balancer import Balancer
from tests.support.sandbox import Sandbox

from .conftest import Files, assert_moves_all
from .conftest import Secured as BrokerPort

pytestmark = pytest.mark.gateway_only

CLIENT, OTHER = "127.0.0.5", "127.0.0.6"
"""Where clients seem to be. Nobody else connects from there."""

HEADER = {"version": 2}
READY_SECONDS = 10
STOP_SECONDS = 5

GENERAL = """
global
    maxconn 200
    log stdout format raw local0 info
    stats timeout 30s
defaults
    mode tcp
    log global
    option logasap
    timeout connect 5s
    timeout client 60s
    timeout server 60s
"""


# -- HAProxy ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Haproxy:
    """A running HAProxy. `port`: where it listens; `log`: what it writes."""

    port: int
    log: Path

    @property
    def service_url(self) -> str:
        return f"pulsar://{HOST}:{self.port}"

    @property
    def traces(self) -> tuple[str, ...]:
        """Return texts that reveal it, if it is a gateway's broker."""
        return (f":{self.port}",)

    def seen(self, name: str) -> list[str]:
        """Return what it has logged about connections under this name."""
        return re.findall(rf"^{name}=(.*)$", self.log.read_text(), re.MULTILINE)


StartHaproxy = Callable[[str, str], Haproxy]
"""Starts one with these options of its listening address, and a line for its server."""


@pytest.fixture
def haproxy(artifacts: Artifacts, say: Say) -> Iterator[StartHaproxy]:
    """Yield a function that starts HAProxy; without it the test is skipped."""
    command = or_skip(lambda _: tool("haproxy"), say)
    with ExitStack() as running:

        def start(bind: str, server: str) -> Haproxy:
            directory = artifacts.directory("haproxy")
            (port,) = free_ports(HOST, 1)
            lines = [f"bind {HOST}:{port} {bind}", f"server next {server}"]
            lines.append('log-format "client=%ci:%cp\\nauthority=%[fc_pp_authority]"')
            file = directory / "haproxy.cfg"
            file.write_text(GENERAL + "listen balancer\n" + "".join(f"    {it}\n" for it in lines))
            started = Haproxy(port, directory / "haproxy.log")
            process = spawn([command, "-db", "-f", str(file)], started.log)
            running.callback(end, process, STOP_SECONDS)
            await_listening(started, process)
            return started

        yield start


def await_listening(started: Haproxy, process: subprocess.Popen[bytes]) -> None:
    """Return when it accepts connections; fail with its log otherwise."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with suppress(OSError), socket.create_connection((HOST, started.port), timeout=1):
            return
        assert process.poll() is None, f"HAProxy ended:\n{tail(started.log)}"
        assert time.monotonic() < deadline, f"HAProxy is not ready:\n{tail(started.log)}"
        time.sleep(0.02)


ClientFrom = Callable[..., Client]


@pytest.fixture
def client_from(tapped: Tapped, connect: Connect) -> Iterator[ClientFrom]:
    """Yield a function that opens a client at an address, which connects to a port. `traces`: what
    it may not see."""
    with ExitStack() as opened:

        def open_one(
            source: str, port: int, traces: tuple[str, ...], token: str | None = None
        ) -> Client:
            way = opened.enter_context(closing(Balancer([port], source)))
            return connect(tapped(way.untapped_url, traces).url, token)

        yield open_one


def ended(gateway: Gateway) -> list[dict[str, Any]]:
    """Return the gateway's log lines about connections that have ended."""
    lines = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    return [line for line in lines if line["event"] == "connection_ended"]


def hosts(gateway: Gateway) -> set[str]:
    """Return the addresses of clients in the gateway's log, without ports."""
    return {line["client"].rpartition(":")[0] for line in ended(gateway)}


# -- in front of the gateway -----------------------------------------------------------------

SENDS = pytest.mark.parametrize("sends", ["send-proxy", "send-proxy-v2"])


@SENDS
def test_the_log_has_the_address_that_a_balancer_states(
    sends: str,
    haproxy: StartHaproxy,
    gateway: StartGateway,
    client_from: ClientFrom,
    sandbox: Sandbox,
) -> None:
    through = gateway(sandbox, Plan(proxies=["127.0.0.1/32"]))
    balancer = haproxy("", f"{HOST}:{through.port} {sends}")
    client = client_from(CLIENT, balancer.port, sandbox.traces)
    assert_works(client, fresh_topic())
    client.close()
    wait_until(lambda: CLIENT in hosts(through))
    reasons = {line["reason"] for line in ended(through)}
    assert "client_violation" not in reasons


@SENDS
def test_a_rule_by_network_is_for_the_address_that_a_balancer_states(
    sends: str,
    haproxy: StartHaproxy,
    gateway: StartGateway,
    client_from: ClientFrom,
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    allowed = {"id": "near", "match": {"network": CLIENT}, "allow": ["produce", "consume"]}
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps({"version": 1, "rules": [allowed]}))
    plan = Plan(proxies=["127.0.0.1"], rules=rules, access="closed", unknown="mask")
    through = gateway(sandbox, plan)
    balancer = haproxy("", f"{HOST}:{through.port} {sends}")
    assert_works(client_from(CLIENT, balancer.port, sandbox.traces), topic := fresh_topic())
    with pytest.raises(client_library.AuthorizationError):
        client_from(OTHER, balancer.port, sandbox.traces).create_producer(topic)
    assert figure(through, "gateway_access_denied_total", listener="clients") >= 1


def test_a_client_beside_the_balancer_needs_no_header(
    gateway: StartGateway, client_from: ClientFrom, sandbox: Sandbox
) -> None:
    through = gateway(sandbox, Plan(proxies=["127.0.0.99"]))
    client = client_from(CLIENT, through.port, sandbox.traces)
    assert_works(client, fresh_topic())
    client.close()
    wait_until(lambda: hosts(through) == {CLIENT})


@SENDS
def test_a_header_from_elsewhere_ends_the_connection(
    sends: str, haproxy: StartHaproxy, gateway: StartGateway, sandbox: Sandbox
) -> None:
    through = gateway(sandbox, Plan(proxies=["127.0.0.99"]))
    balancer = haproxy("", f"{HOST}:{through.port} {sends}")
    address = (HOST, balancer.port)
    with socket.create_connection(address, timeout=10) as sock, suppress(ConnectionResetError):
        while sock.recv(1 << 16):
            pass
    wait_until(lambda: bool(ended(through)))
    assert hosts(through) == {"127.0.0.1"}
    assert {line["reason"] for line in ended(through)} <= {"frame_too_large", "client_closed"}


@SENDS
def test_the_header_comes_before_tls(
    sends: str,
    haproxy: StartHaproxy,
    gateway: StartGateway,
    files: Files,
    sandbox: Sandbox,
    logs: Path,
    say: Say,
) -> None:
    through = gateway(sandbox, Plan(proxies=["127.0.0.1"], tls=files.listener))
    balancer = haproxy("", f"{HOST}:{through.port} {sends}")
    client = replace(or_skip(python_client, say), tls=files.trusting)
    with closing(Balancer([balancer.port], CLIENT)) as way:
        url = way.untapped_url.replace("pulsar://", "pulsar+ssl://")
        assert_moves_all(client, url, logs)
    wait_until(lambda: CLIENT in hosts(through))


# -- behind the gateway ----------------------------------------------------------------------


def test_what_a_gateway_tells_is_understood_and_passed_on(
    haproxy: StartHaproxy, gateway: StartGateway, client_from: ClientFrom, sandbox: Sandbox
) -> None:
    """Client, gateway, HAProxy, another gateway, brokers: each is told the client's address."""
    inner = gateway(sandbox, Plan(proxies=["127.0.0.1"]))
    between = haproxy("accept-proxy", f"{HOST}:{inner.port} send-proxy-v2")
    outer = gateway(between, Plan(header=HEADER, chained=True))
    client = client_from(CLIENT, outer.port, sandbox.traces)
    assert_works(client, fresh_topic())
    client.close()
    wait_until(lambda: CLIENT in hosts(inner))
    wait_until(lambda: CLIENT in hosts(outer))
    seen = {address.rpartition(":")[0] for address in between.seen("client")}
    assert seen == {CLIENT, HOST}  # probes are of nobody, and so of the gateway itself
    assert "client_violation" not in {line["reason"] for line in ended(inner)}


def test_the_header_to_brokers_comes_before_tls(
    haproxy: StartHaproxy,
    gateway: StartGateway,
    client_from: ClientFrom,
    files: Files,
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    inner = gateway(sandbox, PASS_THROUGH)
    both = tmp_path / "broker.pem"
    pair = files.gateway
    both.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    between = haproxy(f"accept-proxy ssl crt {both}", f"{HOST}:{inner.port}")
    secured = Secured(between)
    plan = Plan(header=HEADER, chained=True, brokers_tls={"ca_file": str(files.authority)})
    outer = gateway(secured, plan)
    assert_works(client_from(CLIENT, outer.port, sandbox.traces), fresh_topic())
    assert CLIENT in {address.rpartition(":")[0] for address in between.seen("client")}


def test_brokers_are_told_the_server_that_a_client_names_by_tls(
    haproxy: StartHaproxy, gateway: StartGateway, files: Files, sandbox: Sandbox
) -> None:
    inner = gateway(sandbox, PASS_THROUGH)
    between = haproxy("accept-proxy", f"{HOST}:{inner.port}")
    outer = gateway(between, Plan(header=HEADER, chained=True, tls=files.listener))
    context = ssl.create_default_context(cafile=files.authority)
    with (
        socket.create_connection((HOST, outer.port), 10, (CLIENT, 0)) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as secured,
    ):
        secured.sendall(connect_frame())
        assert kind_of(secured.recv(1 << 16)) == BaseCommand.CONNECTED
    wait_until(lambda: "localhost" in between.seen("authority"))


@dataclass(frozen=True)
class Secured:
    """An HAProxy with TLS, as a gateway's broker."""

    haproxy: Haproxy

    @property
    def service_url(self) -> str:
        return self.haproxy.service_url.replace("pulsar://", "pulsar+ssl://")

    @property
    def traces(self) -> tuple[str, ...]:
        return self.haproxy.traces


# -- a real broker ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(start_broker: StartBroker, authority: Authority) -> Standalone:
    """A broker that reads headers."""
    return start_broker("told", authority=authority, extra={"haProxyProtocolEnabled": "true"})


def connected_by(broker: Standalone, topic: str) -> list[str]:
    """Return the addresses of a topic's producers and consumers in the broker's statistics."""
    stats = broker.admin.stats(topic)
    consumers = [it for of in stats["subscriptions"].values() for it in of["consumers"]]
    return [it["address"] for it in (*stats["publishers"], *consumers)]


@pytest.mark.parametrize("mode", ["pass-through", "verify"])
def test_a_broker_knows_the_address_of_the_client(
    mode: str,
    told: Standalone,
    gateway: StartGateway,
    client_from: ClientFrom,
    plans: Plans,
    authority: Authority,
) -> None:
    header = {"version": 2, "principal": mode != "pass-through"}
    through = gateway(told, replace(plans.of(mode), header=header))
    namespace = f"public/{fresh_topic().rpartition('/')[2]}"
    told.admin.create_namespace(namespace)
    for role in ("alice", "proxy"):
        told.admin.grant(namespace, role)
    topic = fresh_topic(namespace=namespace)
    client = client_from(CLIENT, through.port, told.traces, authority.token("alice"))
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"hello")
    assert consumer.receive(RECEIVE_MS).data() == b"hello"
    addresses = connected_by(told, topic)
    assert len(addresses) == 2
    assert {address.strip("/").rpartition(":")[0] for address in addresses} == {CLIENT}
    assert f"[SR:{CLIENT}, " in told.log.read_text()


def test_a_balancer_and_a_broker_are_linked_by_the_gateway(
    haproxy: StartHaproxy,
    told: Standalone,
    gateway: StartGateway,
    client_from: ClientFrom,
    plans: Plans,
    authority: Authority,
) -> None:
    """The address that the balancer states is the one in the broker's statistics."""
    plan = replace(plans.of("verify"), proxies=["127.0.0.1"], header=HEADER)
    through = gateway(told, plan)
    balancer = haproxy("", f"{HOST}:{through.port} send-proxy")
    namespace = f"public/{fresh_topic().rpartition('/')[2]}"
    told.admin.create_namespace(namespace)
    for role in ("alice", "proxy"):
        told.admin.grant(namespace, role)
    client = client_from(CLIENT, balancer.port, told.traces, authority.token("alice"))
    topic = fresh_topic(namespace=namespace)
    client.create_producer(topic).send(b"hello")
    (address,) = connected_by(told, topic)
    assert address.strip("/").rpartition(":")[0] == CLIENT


def test_a_broker_is_told_the_address_inside_its_own_tls(
    start_broker: StartBroker,
    gateway: StartGateway,
    client_from: ClientFrom,
    files: Files,
) -> None:
    """Brokers look for the header there, against the protocol."""
    (port,) = free_ports(BROKER_HOST, 1)
    extra = {
        "haProxyProtocolEnabled": "true",
        "brokerServicePortTls": port,
        "tlsCertificateFilePath": str(files.broker.certificate),
        "tlsKeyFilePath": str(files.broker.key),
        "brokerClientTlsEnabled": "false",
    }
    broker = start_broker("told-tls", extra=extra)
    secured = BrokerPort(broker, port)
    plan = Plan(header=HEADER, brokers_tls={"ca_file": str(files.authority)})
    through, topic = gateway(secured, plan), fresh_topic()
    client = client_from(CLIENT, through.port, secured.traces)
    client.create_producer(topic).send(b"hello")
    (address,) = connected_by(broker, topic)
    assert address.strip("/").rpartition(":")[0] == CLIENT


def connect_frame() -> bytes:
    """Return the first frame of a client."""
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version = "test"
    return encode(command)
