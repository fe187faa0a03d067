"""Real clients and a real broker, with TLS on either side of the gateway or on both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.programs import Program
from tests.real.fixtures import StartGateway
from tests.real.gateways import Plan, Upstream

from .conftest import Files, Secured, assert_moves_all


@pytest.mark.parametrize("to_brokers", ["plain", "tls"])
def test_clients_with_tls_lose_nothing(
    client: Program,
    to_brokers: str,
    pulsar_tls: Secured,
    files: Files,
    gateway: StartGateway,
    logs: Path,
) -> None:
    plan = Plan(tls=files.listener)
    broker: Upstream = pulsar_tls.broker
    if to_brokers == "tls":
        plan, broker = replace(plan, brokers_tls=files.cluster), pulsar_tls
    assert_moves_all(replace(client, tls=files.trusting), gateway(broker, plan).untapped_url, logs)
