"""The gateway runs out of a resource, blames no broker, and recovers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.wire.contract import EndReason

from .peers import CONNECT, Broker, Client
from .process import CHECKOUT, Gateway, until

DESCRIPTORS = 60
"""Descriptors of the process: some forty more than an idle gateway has."""

WITH_FEW = ("sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh")

NAMING_IMPORTS = ("env", "PYTHONVERBOSE=1")

ALONE = ("unshare", "--map-root-user", "--net")
"""Run in a new network namespace, where any user may set the port range."""


def test_the_gateway_recovers_when_descriptors_are_used_up(broker: Broker, tmp_path: Path) -> None:
    gateway = Gateway([broker], tmp_path, {}, wrapper=WITH_FEW)
    try:
        clients = [Client(gateway.ports["passing"]) for _ in range(DESCRIPTORS)]
        for client in clients:
            client.say(CONNECT)
        assert until(lambda: gateway.logged("accept_failed"))
        assert until(lambda: gateway.logged("resources_exhausted"))
        for client in clients:
            client.close()
        assert until(lambda: gateway.metrics().connections("passing") == 0)
        gateway.serves()
        ended = +gateway.metrics().ended("passing")
        gone = {EndReason.CLIENT_CLOSED, EndReason.CLIENT_LOST}
        assert ended.keys() <= {EndReason.NO_BROKER, *gone}
        assert ended[EndReason.NO_BROKER] > 0
        assert gateway.failures("own") >= ended[EndReason.NO_BROKER]
        assert sum(gateway.metrics().matching("gateway_accept_failures_total{")) > 0
        assert gateway.healthy
        assert not gateway.logged("broker_down")
    finally:
        gateway.stop()


def test_no_connection_needs_another_module(broker: Broker, tmp_path: Path) -> None:
    """An import fails when descriptors are used up, and with it whatever needs the module."""
    gateway = Gateway([broker], tmp_path, {}, wrapper=NAMING_IMPORTS)
    try:
        before = imports(gateway)
        assert before
        for listener in ("serving", "masking", "checking"):
            gateway.serves_at(listener)
        assert imports(gateway)[len(before) :] == []
    finally:
        gateway.stop()


def imports(gateway: Gateway) -> list[str]:
    """Return the modules that the gateway has imported."""
    return re.findall(r"^import '([^']+)'", gateway.log.read_text(), re.MULTILINE)


def test_the_gateway_recovers_when_source_ports_are_used_up(tmp_path: Path) -> None:
    """See `ports`."""
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    command = [*ALONE, sys.executable, "-m", "tests.hostile.ports", str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{EndReason.NO_BROKER.value} and back\n"
