"""The doctor finds what a real TubeMQ, or what is none, has to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.gateways import in_front_of
from tests.real.brokers.ports import free_ports
from tests.real.gateways import HOST

pytestmark = pytest.mark.real


def examine(tubemq: TubeMQ, folder: Path, **changes: Any) -> str:
    """Return what the doctor prints, in one line."""
    port, admin = free_ports(HOST, 2)
    settings = in_front_of(tubemq).settings(tubemq, port, admin)
    settings["clusters"]["main"] |= changes
    file = folder / "gateway.yaml"
    file.write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "gateway", "doctor", str(file)]
    wide = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=wide
    )
    return " ".join(done.stdout.split())


def test_a_master_says_that_it_is_active_and_where_brokers_are(
    tubemq: TubeMQ, tmp_path: Path
) -> None:
    found = examine(tubemq, tmp_path)
    assert f"master {tubemq.master} speaks TubeMQ, active" in found
    assert f"brokers, as {tubemq.master} tells 2 brokers, with the ids 1-2" in found
    for host, port in tubemq.brokers.values():
        assert f"advertised {host}:{port} allowed, and can be connected to" in found


def test_a_broker_is_no_master(tubemq: TubeMQ, tmp_path: Path) -> None:
    """It answers, and has none of a master's methods."""
    host, port = tubemq.brokers[1]
    found = examine(tubemq, tmp_path, brokers=f"tubemq://{host}:{port}")
    assert f"master {host}:{port} speaks TubeMQ, and is no master" in found
