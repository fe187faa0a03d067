"""The gateway as its users start it: a process, a configuration file, a port."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from .brokers.ports import free_ports
from .brokers.processes import end, spawn, tail

HOST = "127.0.0.1"
CHECKOUT = Path(__file__).resolve().parents[2]
CLUSTER = "main"
READY_SECONDS = 120
# Longer than a drain with a live client takes.
STOP_SECONDS = 60

Settings = dict[str, Any]


class Upstream(Protocol):
    """What a gateway stands in front of: one broker, or some of a cluster."""

    @property
    def service_url(self) -> str:
        """Return `pulsar://host:port`, with a comma before each further `host:port`."""

    @property
    def traces(self) -> tuple[str, ...]:
        """Return texts that reveal a broker."""


@dataclass(frozen=True)
class Plan:
    """The configuration that a test needs.

    `identity`: how clients authenticate; `credential`: the gateway's own, if it acts for clients;
    `unknown`: what to do with unknown commands; `checksums`: with damaged messages; `key`: seals
    names, else a random one; `names`: how brokers are named, if that is the whole setting;
    `chained`: the brokers are gateways; `deadlines`: if the usual ones are too long for a test;
    `migrations`: gateways in front of other clusters, by the URLs of their brokers; `targets`: what
    may be dialled, if not just the brokers; `rules`: files of limits; `limits`: other bounds;
    `workers`: serving processes; `tls`: of the listener; `brokers_tls`: to brokers;
    `access`: what clients may do that no rule allows; `more`: other parts of the file;
    `proxies`: networks of those that say who
    their clients are; `header`: what brokers are told of clients; `age`: of connections whose
    clients are moved.
    """

    identity: Mapping[str, Any] = field(default_factory=lambda: {"mode": "pass-through"})
    credential: Mapping[str, Any] | None = None
    unknown: str = "pass"
    checksums: str = "pass"
    key: Path | None = None
    names: Mapping[str, Any] | None = None
    chained: bool = False
    deadlines: Mapping[str, str] = field(default_factory=dict)
    migrations: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, Any] | None = None
    rules: Path | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    tls: Mapping[str, Any] | None = None
    brokers_tls: Mapping[str, Any] | None = None
    access: str = "open"
    more: Mapping[str, Any] = field(default_factory=dict)
    proxies: Sequence[str] = ()
    header: Mapping[str, Any] | None = None
    age: str | None = None

    @property
    def scheme(self) -> str:
        """Return the scheme of the clients' URLs."""
        return "pulsar+ssl" if self.tls else "pulsar"

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        """Return the whole content of the configuration file."""
        listener: Settings = {"name": "clients", "bind": f"{HOST}:{port}", "cluster": CLUSTER}
        listener |= {"identity": dict(self.identity), "unknown": self.unknown}
        listener |= {"checksums": self.checksums, "access": self.access}
        if self.tls:
            listener["tls"] = dict(self.tls)
        if self.age:
            listener["connection_age"] = self.age
        if self.proxies:
            listener["proxy_protocol"] = {"from": list(self.proxies)}
        return {
            "version": 1,
            "listeners": [listener],
            "clusters": {CLUSTER: self._cluster(broker)},
            "admin": {"bind": f"{HOST}:{admin_port}"},
            "workers": self.workers,
            "deadlines": dict(self.deadlines),
            "limits": dict(self.limits),
            "rules": [str(self.rules)] if self.rules else [],
            **self.more,
        }

    def _cluster(self, broker: Upstream) -> Settings:
        cluster: Settings = {"brokers": broker.service_url}
        targets = dict(self.targets or _targets(broker))
        cluster |= {"brokers_are": "gateways"} if self.chained else {"targets": targets}
        if self.brokers_tls:
            cluster["tls"] = dict(self.brokers_tls)
        if self.header:
            cluster["proxy_protocol"] = dict(self.header)
        if self.credential:
            cluster["credential"] = dict(self.credential)
        names = sealed_by(self.key) if self.key else self.names
        if names:
            cluster["names"] = dict(names)
        if self.migrations:
            cluster["migrations"] = [
                {"brokers": brokers, "gateway": url} for brokers, url in self.migrations.items()
            ]
        return cluster


def _targets(broker: Upstream) -> Settings:
    """Return settings that allow these brokers and no others."""
    addresses = broker.service_url.partition("://")[2].split(",")
    hosts, ports = zip(*(address.split(":") for address in addresses), strict=True)
    return {"networks": [f"{host}/32" for host in hosts], "ports": sorted({*map(int, ports)})}


def sealed_by(*keys: Path) -> Settings:
    """Return settings of sealed names: the first key seals them, all keys open them."""
    return {"sealed": {"keys": [{"file": str(key)} for key in keys]}}


PASS_THROUGH = Plan()


def verifying(credential: Path, *, forward: bool = False, **token: Any) -> Plan:
    """Return a plan that verifies tokens (`token` says by which key) and shows the broker the
    gateway's own credential, with the client's if `forward`."""
    mode = "verify-and-forward" if forward else "verify"
    identity = {"mode": mode, "token": {"principal_claim": "sub"} | token}
    return Plan(identity, {"token_file": str(credential)})


MODES = ("pass-through", "verify", "verify-and-forward")
"""Ways to authenticate clients."""


@dataclass(frozen=True)
class Plans:
    """Settings of gateways that know the tokens' secret and have a credential of their own."""

    secret: Path
    credential: Path

    def of(self, mode: str) -> Plan:
        if mode == "pass-through":
            return PASS_THROUGH
        forward = mode == "verify-and-forward"
        return verifying(
            self.credential, forward=forward, secret_file=str(self.secret), algorithms=["HS256"]
        )


class Gateway:
    """One running gateway in front of `broker`; `directory` takes its settings and its log.

    Clients are given the URL of a tap in front of `untapped_url`. `program` is the module that
    runs, with its arguments.
    """

    def __init__(
        self, broker: Upstream, plan: Plan, directory: Path, program: Sequence[str] = ("gateway",)
    ) -> None:
        self.port, self.admin_port = free_ports(HOST, 2)
        self.untapped_url = f"{plan.scheme}://{HOST}:{self.port}"
        self.metrics_url = f"http://{HOST}:{self.admin_port}/metrics"
        self.log = directory / "gateway.log"
        self._file = directory / "gateway.yaml"
        self._settings = plan.settings(broker, self.port, self.admin_port)
        self._command = [sys.executable, "-m", *program, "run", str(self._file)]
        self._environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        self._descriptors: tuple[int, ...] = ()
        self._log_checked = 0
        self._process: subprocess.Popen[bytes] | None = None

    def wrap(self, command: Sequence[str], environment: Mapping[str, str], *passed: int) -> None:
        """Have it started by another command, which gets the gateway's as its arguments, and these
        descriptors."""
        self._command = [*command, *self._command]
        self._environment |= environment
        self._descriptors = passed

    def start(self, until: str = "readyz") -> None:
        """Return when the gateway is ready (or, with "livez", alive); fail with its log otherwise.
        After a stop, start again."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(yaml.safe_dump(self._settings, sort_keys=False))
        self._process = spawn(
            self._command, self.log, self._environment, descriptors=self._descriptors
        )
        try:
            self._wait_until(until, time.monotonic() + READY_SECONDS)
        except BaseException:
            end(self._process, STOP_SECONDS, signal.SIGKILL)
            self._process = None
            raise

    def stop(self) -> None:
        """Stop the gateway, and assert that it exits in good order; do nothing if it is down."""
        process, self._process = self._process, None
        if process is None:
            return
        code = end(process, STOP_SECONDS)
        assert code is not None, (
            f"the gateway did not end within {STOP_SECONDS} s of SIGTERM:\n{tail(self.log)}"
        )
        assert code == 0, f"the gateway ended with {code}:\n{tail(self.log)}"
        self.assert_no_new_traceback()

    @property
    def process(self) -> int:
        """Return the id of the running process."""
        assert self._process is not None
        return self._process.pid

    def await_end(self) -> None:
        """Wait until the gateway has ended by itself, and assert that it did in good order."""
        process, self._process = self._process, None
        assert process is not None
        assert process.wait(STOP_SECONDS) == 0, f"the gateway did not end well:\n{tail(self.log)}"
        self.assert_no_new_traceback()

    def kill(self) -> None:
        """Kill the gateway, which closes nothing in good order."""
        process, self._process = self._process, None
        assert process is not None
        end(process, STOP_SECONDS, signal.SIGKILL)

    def assert_no_new_traceback(self) -> None:
        """Check the log since the last call."""
        fresh = self.log.read_bytes()[self._log_checked :]
        self._log_checked += len(fresh)
        at = fresh.find(b"Traceback")
        around = fresh[max(0, at - 500) : at + 3000].decode(errors="replace")
        assert at < 0, f"the gateway logged a traceback:\n{around}"

    def ask(self, path: str) -> tuple[int, str]:
        """Return status and text of the admin listener's answer. Raises OSError without an
        answer."""
        url = f"http://{HOST}:{self.admin_port}/{path}"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def _wait_until(self, path: str, deadline: float) -> None:
        assert self._process is not None
        while not self._affirms(path):
            assert self._process.poll() is None, (
                f"the gateway ended with {self._process.returncode}:\n{tail(self.log)}"
            )
            assert time.monotonic() < deadline, (
                f"the gateway was not ready after {READY_SECONDS} s:\n{tail(self.log)}"
            )
            time.sleep(0.05)

    def _affirms(self, path: str) -> bool:
        try:
            return self.ask(path)[0] == 200
        except OSError:  # nothing listens yet
            return False
