"""A gateway under a service manager, which keeps its address open while it restarts."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.artifacts import Artifacts
from tests.real.clients import fresh_topic, wait_until
from tests.real.fixtures import Connect, Tapped
from tests.real.gateways import HOST, Gateway, Plan

from .brokers import Brokers
from .test_drain import Load

STARTED = """
import os, sys
os.dup2(int(os.environ.pop("PASSED")), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes the gateway, as a manager's process does: the socket is its third descriptor."""


class Manager:
    """A service manager of one gateway."""

    def __init__(self, brokers: Brokers, plan: Plan, folder: Path) -> None:
        self.gateway = Gateway(brokers, plan, folder)
        self._listening = socket.create_server((HOST, self.gateway.port))
        self._hearing = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._hearing.bind(str(folder / "notify"))
        self.told: list[str] = []
        threading.Thread(target=self._hear, daemon=True).start()
        os.set_inheritable(self._listening.fileno(), True)
        self.gateway.wrap(
            [sys.executable, "-c", STARTED],
            {
                "PASSED": str(self._listening.fileno()),
                "LISTEN_FDNAMES": "clients",
                "NOTIFY_SOCKET": str(folder / "notify"),
                "WATCHDOG_USEC": "400000",
            },
            self._listening.fileno(),
        )

    def _hear(self) -> None:
        while data := self._hearing.recv(1000):
            self.told += data.decode().splitlines()

    def close(self) -> None:
        self.gateway.stop()
        self._hearing.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture(params=[1, 2], ids=["alone", "workers"])
def manager(
    brokers: Brokers, artifacts: Artifacts, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Manager]:
    key = tmp_path / "seal.key"
    key.write_bytes(bytes(range(32)))
    folder = artifacts.directory("managed")
    folder.mkdir(parents=True, exist_ok=True)
    made = Manager(brokers, Plan(key=key, workers=request.param), folder)
    yield made
    made.close()


@pytest.mark.gateway_only
def test_a_restart_refuses_nobody_and_loses_nothing(
    manager: Manager, brokers: Brokers, tapped: Tapped, connect: Connect
) -> None:
    """A client connects while nobody serves, others stay through two restarts."""
    gateway = manager.gateway
    waiting = socket.create_connection((HOST, gateway.port), timeout=60)
    gateway.start()
    wait_until(lambda: "READY=1" in manager.told and manager.told.count("WATCHDOG=1") >= 2)
    load = Load(connect(tapped(gateway.untapped_url, brokers.traces).url), fresh_topic())
    for _ in range(2):
        wait_until(lambda: len(load.acknowledged) > 50)
        gateway.stop()
        with socket.create_connection((HOST, gateway.port), timeout=60):
            gateway.start()
    load.finish()
    waiting.close()
    load.assert_exact()
    assert list(dict.fromkeys(load.received)) == list(range(load.sent))
    kinds = [it.partition("=")[0] for it in manager.told if it != "WATCHDOG=1"]
    assert kinds == ["READY", "STOPPING", "EXTEND_TIMEOUT_USEC"] * 2 + ["READY"]
