"""The gateway as its users start it: a process, a file of settings, a port."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .brokers.ports import free_ports
from .brokers.processes import end, spawn, tail
from .brokers.standalone import Standalone

HOST = "127.0.0.1"
CHECKOUT = Path(__file__).resolve().parents[2]
CLUSTER = "main"
READY_SECONDS = 20
# Longer than a drain with a live client takes.
STOP_SECONDS = 30

Settings = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a test wants of a gateway.

    `identity`: how clients prove who they are; `credential`: our own, where we speak for them;
    `unknown`: what becomes of commands nobody knows; `key`: seals names, else a random one.
    """

    identity: Mapping[str, Any] = field(default_factory=lambda: {"mode": "pass-through"})
    credential: Mapping[str, Any] | None = None
    unknown: str = "pass"
    key: Path | None = None

    def settings(self, broker: Standalone, port: int, admin_port: int) -> Settings:
        """The whole content of the gateway's file."""
        listener: Settings = {"name": "clients", "bind": f"{HOST}:{port}", "cluster": CLUSTER}
        listener |= {"identity": dict(self.identity), "unknown": self.unknown}
        return {
            "version": 1,
            "listeners": [listener],
            "clusters": {CLUSTER: self._cluster(broker)},
            "admin": {"bind": f"{HOST}:{admin_port}"},
        }

    def _cluster(self, broker: Standalone) -> Settings:
        targets = {"networks": [f"{broker.host}/32"], "ports": [broker.port]}
        cluster: Settings = {"brokers": [broker.service_url], "targets": targets}
        if self.credential:
            cluster["credential"] = dict(self.credential)
        if self.key:
            cluster["names"] = {"sealed": {"keys": [{"file": str(self.key)}]}}
        return cluster


PASS_THROUGH = Plan()


def verifying(credential: Path, *, forward: bool = False, **token: Any) -> Plan:
    """We check tokens (`token` says by which key) and show the broker our own credential, with the
    client's if `forward`.
    """
    mode = "verify-and-forward" if forward else "verify"
    identity = {"mode": mode, "token": {"principal_claim": "sub"} | token}
    return Plan(identity, {"token_file": str(credential)})


class Gateway:
    """One running gateway in front of `broker`; `directory` takes its settings and its log."""

    def __init__(self, broker: Standalone, plan: Plan, directory: Path) -> None:
        self.port, self.admin_port = free_ports(HOST, 2)
        self.url = f"pulsar://{HOST}:{self.port}"
        self.metrics_url = f"http://{HOST}:{self.admin_port}/metrics"
        self.log = directory / "gateway.log"
        self._file = directory / "gateway.yaml"
        self._settings = plan.settings(broker, self.port, self.admin_port)
        self._log_checked = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when the gateway says that it is ready; fails with its log otherwise. After a
        stop it starts anew.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(yaml.safe_dump(self._settings, sort_keys=False))
        command = [sys.executable, "-m", "gateway", "run", str(self._file)]
        self._process = spawn(command, self.log, os.environ | {"PYTHONPATH": str(CHECKOUT)})
        try:
            self._wait_until_ready(time.monotonic() + READY_SECONDS)
        except BaseException:
            end(self._process, STOP_SECONDS, signal.SIGKILL)
            self._process = None
            raise

    def stop(self) -> None:
        """Asks the gateway to end, and asserts that it did so in good order; harmless when it is
        down.
        """
        process, self._process = self._process, None
        if process is None:
            return
        code = end(process, STOP_SECONDS)
        assert code is not None, (
            f"the gateway did not end within {STOP_SECONDS} s of SIGTERM:\n{tail(self.log)}"
        )
        assert code == 0, f"the gateway ended with {code}:\n{tail(self.log)}"
        self.assert_no_new_traceback()

    def assert_no_new_traceback(self) -> None:
        """Looks at what was logged since the last call."""
        fresh = self.log.read_bytes()[self._log_checked :]
        self._log_checked += len(fresh)
        at = fresh.find(b"Traceback")
        around = fresh[max(0, at - 500) : at + 3000].decode(errors="replace")
        assert at < 0, f"the gateway logged a traceback:\n{around}"

    def _wait_until_ready(self, deadline: float) -> None:
        assert self._process is not None
        while not self._is_ready():
            assert self._process.poll() is None, (
                f"the gateway ended with {self._process.returncode}:\n{tail(self.log)}"
            )
            assert time.monotonic() < deadline, (
                f"the gateway was not ready after {READY_SECONDS} s:\n{tail(self.log)}"
            )
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://{HOST}:{self.admin_port}/readyz", timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except OSError:  # includes HTTPError: not ready yet
            return False
