"""One gateway process as the chart's modes configure it, and its memory and CPU.

The settings are those of `helm/broker-gateway/modes`. Only addresses, files of secrets, rules and
the time to drain are replaced.
"""

from __future__ import annotations

import os
import secrets
import signal
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from joserfc.jwk import RSAKey

from gateway.config.load import load
from gateway.config.model import ResourceLimits
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from tests.bench.machine import cpu_seconds, memory
from tests.hostile.peers import HOST, PATIENCE, Client
from tests.hostile.process import CHECKOUT, Metrics
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail
from tests.soak import reload
from tests.soak.brokers import Brokers
from tests.soak.runner import WAITS, claim, in_time
from tests.soak.stalled import END_BUFFER, kernel_buffers
from tests.soak.visits import connect
from tests.support.certificates import CertificateAuthority, Wanted
from tests.support.issuer import SigningKey

MODES = CHECKOUT / "helm" / "broker-gateway" / "modes"

SOURCES = 16
"""Client addresses: of what connections keep, one gets half, and all of these 16 parts of 17."""

SEGMENT = 32_000
"""Bytes. With the 64 KiB of loopback the kernel begins with buffers of megabytes, with the 1,400 of
networks with so small ones that thousands of connections are needed to fill a bound."""

EVERYBODY: dict[str, Any] = {
    "id": "everybody",
    "limit": {"publish": {"messages": "1000000/s"}, "dispatch": {"messages": "1000000/s"}},
    "per": "tenant",
}
"""A rule that counts each message and delays none."""

ALLOWED = {"id": "allowed", "allow": ["produce", "consume"]}
"""A rule for a listener where nothing is allowed otherwise."""


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes: of the process or processes, and in the buffers of all TCP sockets of this machine."""

    rss: int
    pss: int
    kernel: int

    @classmethod
    def of(cls, *pids: int) -> Self:
        """Return the sum of some processes; one that has just ended counts nothing."""
        found = []
        for pid in pids:
            with suppress(OSError):  # it has ended meanwhile
                found.append(memory(pid))
        rss, pss = (sum(it.get(name, 0) for it in found) for name in ("Rss", "Pss"))
        return cls(rss, pss, kernel_buffers())


class Pod:
    """The process of one mode. `rules`: their number; `limits`: in place of the mode's.
    `resources`: what the chart asks for it."""

    def __init__(
        self,
        folder: Path,
        mode: str,
        brokers: Sequence[str],
        rules: int,
        limits: Mapping[str, str],
    ) -> None:
        text = (MODES / f"{mode}.yaml").read_text()
        read: dict[str, Any] = yaml.safe_load(text)
        self.resources: dict[str, Any] = read["resources"]
        self.log = folder / "gateway.log"
        self._port, admin = free_ports(HOST, 2)
        self._admin = f"{HOST}:{admin}"
        self._rules, self._number, self._version = folder / "rules.yaml", rules, 0
        self._hello = connect()
        self._tls: ssl.SSLContext | None = None
        self._settings = read["config"]
        self._settings["limits"] |= limits
        self._settle(folder, brokers)
        self._write()
        file = folder / "gateway.yaml"
        file.write_text(yaml.safe_dump(self._settings))
        self.limits: ResourceLimits = load(file).limits
        self._process = spawn(
            [sys.executable, "-m", "gateway", "run", str(file)],
            self.log,
            os.environ | {"PYTHONPATH": str(CHECKOUT)},
        )
        assert in_time(self._is_ready), f"the gateway did not start:\n{tail(self.log)}"

    def _settle(self, folder: Path, brokers: Sequence[str]) -> None:
        """Replace what belongs to a cluster."""
        (listener,) = self._settings["listeners"]
        listener["bind"] = f"{HOST}:{self._port}"
        if "tls" in listener:
            listener["tls"] = {"certificates": [self._certificate(folder)]}
        if listener["identity"]["mode"] == "verify":
            listener["identity"]["token"]["public_key_file"] = self._issuer(folder)
        cluster = self._settings["clusters"]["main"]
        del cluster["targets"]
        cluster["brokers"] = "pulsar://" + ",".join(brokers)
        if "connection_age" in listener:  # for which the chart makes a key that all pods share
            key = folder / "seal.key"
            key.write_bytes(secrets.token_bytes(32))
            cluster["names"] = {"sealed": {"keys": [{"file": str(key)}]}}
        self._settings["admin"]["bind"] = self._admin
        self._settings["deadlines"]["grace"] = "0s"
        self._settings["rules"] = str(self._rules)

    def _certificate(self, folder: Path) -> dict[str, str]:
        authority = CertificateAuthority()
        pair = authority.issue(Wanted([HOST])).written(folder)
        self._tls = ssl.create_default_context(cadata=authority.certificate.decode())
        return {"certificate_file": str(pair.certificate), "key_file": str(pair.key)}

    def _issuer(self, folder: Path) -> str:
        key = RSAKey.generate_key(2048)
        file = folder / "public.pem"
        file.write_bytes(key.as_pem(private=False))
        token = SigningKey(key=key, algorithm="RS256").token(exp=int(time.time()) + 3600)
        self._hello = connect(auth_method_name="token", auth_data=token.encode())
        return str(file)

    def _write(self) -> None:
        closed = self._settings["listeners"][0].get("access") == "closed"
        more = [EVERYBODY, ALLOWED] if closed else [EVERYBODY]
        reload.write(self._rules, self._number, self._version, more)

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, f"the gateway ended:\n{tail(self.log)}"
        with suppress(OSError):
            return self.metrics().healthy_brokers > 0
        return False

    # -- clients -------------------------------------------------------------------------------

    @property
    def speaks_tls(self) -> bool:
        """Return True if clients speak TLS."""
        return self._tls is not None

    def knock(self, number: int = 0, *, reluctant: bool = False) -> Client:
        """Return a new connection of one of the sources, after the TLS handshake if there is
        any. A reluctant client takes little into its buffers."""
        source = f"127.0.1.{1 + number % SOURCES}"
        sizes = (END_BUFFER, SEGMENT) if reluctant else (0, 0)
        client = Client(self._port, sizes[0], source, sizes[1])
        if self._tls:
            client.sock = self._tls.wrap_socket(client.sock, server_hostname=HOST)
        return client

    def client(self, number: int = 0, *, reluctant: bool = False) -> Client:
        """Return an open connection."""
        client = self.knock(number, reluctant=reluctant)
        client.say(self._hello)
        answer = client.hear()
        assert answer.type == BaseCommand.CONNECTED, answer
        return client

    # -- observations --------------------------------------------------------------------------

    @property
    def size(self) -> Size:
        """Return the memory of the process."""
        return Size.of(self._process.pid)

    @property
    def cpu(self) -> float:
        """Return the seconds of CPU that the process, without its children, has used."""
        return cpu_seconds(self._process.pid)

    def metrics(self) -> Metrics:
        """Return all metrics as of now, except those of topics."""
        with urllib.request.urlopen(f"http://{self._admin}/metrics", timeout=PATIENCE) as answer:
            return Metrics(answer.read().decode())

    def reloaded(self) -> Size:
        """Reload all rules, each changed; return the most memory meanwhile, with the process that
        reads them."""
        self._version += 1
        logged = self.log.stat().st_size
        self._write()
        self._process.send_signal(signal.SIGHUP)
        sizes = [self.size]
        while '"rules_loaded"' not in self.log.read_text()[logged:]:
            sizes.append(Size.of(self._process.pid, *self._children()))
            claim(len(sizes) < 10_000, "rules were not reloaded")
        sizes.append(self.size)
        return max(sizes, key=lambda size: size.pss)

    def _children(self) -> list[int]:
        """Return the processes that it has started."""
        found = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                if int(file.read_text().rpartition(") ")[2].split()[1]) == self._process.pid:
                    found.append(int(file.parent.name))
        return found

    def stop(self) -> None:
        """Stop the process, and check that it exits in good order."""
        status = end(self._process, WAITS * PATIENCE)
        assert status == 0, f"{status}: {tail(self.log)}"


@contextmanager
def running(
    folder: Path, mode: str, behind: Brokers, rules: int, limits: Mapping[str, str]
) -> Iterator[Pod]:
    """Yield the running process of a mode."""
    pod = Pod(folder, mode, behind.addresses, rules, limits)
    try:
        yield pod
    finally:
        pod.stop()
