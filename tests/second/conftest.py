"""A gateway from a real configuration file, in front of brokers that speak `memo`."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
import trio
import trio.testing

from gateway import assembly, protocols
from gateway.admin.routes import METRICS, TOPICS
from gateway.app import Application
from gateway.brokers.names import Names
from gateway.config import load, model
from gateway.control.services import ListenerServices
from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal
from gateway.wire.subject import Subject
from tests.second.broker import Broker, brokers
from tests.second.entry import PLUGIN, SCHEMES
from tests.second.names import PortNames

PATIENCE = 20.0
"""Seconds after which a waiting test fails; no test depends on the value."""

LARGE = 7 * 1024 * 1024
"""Bytes, more than the largest stop frame has."""

RULES = """
version: 1
rules:
  - {id: slow, match: {topic: public/default/slow}, limit: {publish: {messages: 1/m}}}
"""

CONFIGURATION = """
version: 1
listeners:
  - name: clients
    protocol: memo
    bind: [{binds}]
    cluster: main
    trace: {trace}
clusters:
  main: {{brokers: [{brokers}]}}
admin: {{bind: "{admin}"}}
rules: [rules.yaml]
"""


@dataclass
class Deployment:
    """A gateway and its brokers. `any`: the gateway's address for any broker. `places`: its address
    for each broker. `denied`: denials by topic.
    """

    app: Application
    brokers: list[Broker]
    any: Address
    places: list[Address]
    admin: Address
    denied: dict[str, Denial] = field(default_factory=dict)

    def revoke(self, topic: str) -> None:
        """Forbid the use of a topic, and revoke its accounts."""
        denial = self.denied[topic] = Denial(Refusal.UNAUTHORIZED, f"no more {topic}")
        scanners = [it for pair in self.app._reactor.pairs for it in pair.session.scanners]
        accounts = [account for it in scanners for account in getattr(it, "accounts", {}).values()]
        for account in accounts:
            if account.topic == topic:
                self.app._reactor.revoke(account, denial)

    def let_pass(self, seconds: float) -> None:
        """Move the clock of the plane and the limits forward."""
        clock = self.app._reactor.clock
        self.app._reactor.clock = lambda: clock() + seconds
        self.app._reactor.keep_deadlines()

    async def metrics(self) -> list[str]:
        """Return the lines of all metrics."""
        return [line for path in (METRICS, TOPICS) for line in await self._get(path)]

    async def _get(self, path: str) -> list[str]:
        async with await trio.open_tcp_stream(*self.admin.pair) as stream:
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            await stream.send_all(head.encode())
            return b"".join([it async for it in stream]).decode().splitlines()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the protocol, and leave the garbage collector of the tests' process as it is."""
    monkeypatch.setitem(protocols.PLUGINS, PLUGIN.name, PLUGIN)
    for name, scheme in SCHEMES.items():
        monkeypatch.setitem(protocols.SCHEMES, name, scheme)
    monkeypatch.setattr("gateway.app.begin_collections", lambda: None)


class Deploy(Protocol):
    """Runs a deployment. `trace`: networks of clients whose connections are traced."""

    def __call__(self, trace: str = "[]") -> AbstractAsyncContextManager[Deployment]: ...


def _free(count: int) -> list[Address]:
    """Return addresses without a listener."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [Address(*it.getsockname()[:2]) for it in sockets]
    for sock in sockets:
        sock.close()
    return found


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Return a function that runs a deployment."""

    @asynccontextmanager
    async def open(trace: str = "[]") -> AsyncIterator[Deployment]:
        async with brokers("a", "b") as served:
            any, admin, *places = _free(2 + len(served))
            addresses = [broker.address for broker in served]
            _name_by_ports(monkeypatch, dict(zip(addresses, places, strict=True)))
            (tmp_path / "rules.yaml").write_text(RULES)
            path = tmp_path / "gateway.yaml"
            path.write_text(
                CONFIGURATION.format(
                    binds=", ".join(f'"{it}"' for it in (any, *places)),
                    brokers=", ".join(f'"memo://{it}"' for it in addresses),
                    admin=admin,
                    trace=trace,
                )
            )
            deployment = Deployment(Application(load.load(path)), served, any, places, admin)
            _deny(monkeypatch, deployment)
            with trio.fail_after(PATIENCE):
                async with trio.open_nursery() as nursery:
                    await nursery.start(deployment.app.serve)
                    yield deployment
                    nursery.cancel_scope.cancel()

    return open


def _name_by_ports(monkeypatch: pytest.MonkeyPatch, places: dict[Address, Address]) -> None:
    def names(name: str, cluster: model.Cluster, secret: bytes | None = None) -> Names:
        return PortNames(places)

    monkeypatch.setattr(assembly, "make_names", names)


def _deny(monkeypatch: pytest.MonkeyPatch, deployment: Deployment) -> None:
    """Make all services refuse accounts of denied topics."""
    admit = ListenerServices.admit

    def ask(
        self: ListenerServices, action: Action, subject: Subject, *, again: bool = False
    ) -> Account | Denial:
        name = subject.topic.name if subject.topic else ""
        return deployment.denied.get(name) or admit(self, action, subject, again=again)

    monkeypatch.setattr(ListenerServices, "admit", ask)
