"""Gateways that share a limit, in a few seconds, with Python clients and a real store."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.loads import Offer, python_load
from tests.real.artifacts import Artifacts
from tests.real.clients import (
    Client,
    Producer,
    close_client,
    fresh_topic,
    open_client,
    wait_until,
)
from tests.real.fixtures import Reach
from tests.real.gateways import Gateway
from tests.real.metrics import scrape, total
from tests.support.sandbox import Sandbox
from tests.support.store import StoreServer

from .replicas import Phase, Run, played, replicas, sharing
from .scenarios import Limit
from .ways import Ruled, ruled

pytestmark = pytest.mark.gateway_only

LIMIT = Limit(300)
OFFER = Offer(pending=50, patience=20)


@pytest.fixture
def folder(artifacts: Artifacts) -> Path:
    return artifacts.directory("replicas")


@pytest.fixture
def server(folder: Path) -> Iterator[StoreServer]:
    server = StoreServer(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def gateways(sandbox: Sandbox, server: StoreServer, folder: Path) -> Iterator[list[Gateway]]:
    # A call that took 50 ms would let each replica go on by itself.
    with replicas(sandbox, LIMIT, server, folder, count=2, timeout="5s") as gateways:
        yield gateways


@pytest.fixture
def hasty(sandbox: Sandbox, server: StoreServer, folder: Path) -> Iterator[list[Gateway]]:
    """Yield gateways that do not wait for a store that is slow."""
    with replicas(sandbox, LIMIT, server, folder, count=2) as gateways:
        yield gateways


@pytest.fixture
def several(sandbox: Sandbox, folder: Path) -> Iterator[Gateway]:
    """Yield one gateway of two workers."""
    rules = ruled(folder, LIMIT).rules
    gateway = Gateway(sandbox, Ruled(workers=2, rules=rules), folder / "gateway")
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture
def opening(sandbox: Sandbox, server: StoreServer, folder: Path) -> Iterator[list[Gateway]]:
    """Yield gateways that together admit twenty new producers a second."""
    rule = {"id": "opens", "limit": {"producer_creations": "20/s"}, "burst": 2}
    file = folder / "opens.yaml"
    file.write_text(yaml.safe_dump({"version": 1, "rules": [rule]}))
    with sharing(sandbox, file, server, folder, count=2) as gateways:
        yield gateways


def up(gateway: Gateway) -> float:
    return total(scrape(gateway.metrics_url), "gateway_store_up")


def most(phase: Mapping[str, Any], processes: int) -> float:
    """Return how many messages may pass in a phase. The reservation of each process, and a saved
    tenth of a second, may be added."""
    return LIMIT.rate * (float(phase["within"]) + 0.1 + 0.1) + processes


def test_replicas_share_one_limit(
    gateways: list[Gateway], server: StoreServer, folder: Path
) -> None:
    run = Run("short", "python", LIMIT, (Phase("all", 3.0),), OFFER)
    facts = played(run, python_load(print), server, gateways, folder)
    print(facts)
    (phase,) = facts["phases"]
    assert phase["forwarded"] <= most(phase, processes=len(gateways))
    assert min(phase["shares"]) > 0
    assert all(up(gateway) == 1 for gateway in gateways)
    assert all(total(scrape(it.metrics_url), "gateway_store_processes") == 2 for it in gateways)


def test_workers_share_one_limit(several: Gateway, server: StoreServer, folder: Path) -> None:
    run = Run("short", "python", LIMIT, (Phase("all", 3.0),), OFFER)
    facts = played(run, python_load(print), server, [several] * 4, folder)
    print(facts)
    (phase,) = facts["phases"]
    assert phase["forwarded"] <= most(phase, processes=2)
    assert min(phase["shares"]) > 0
    text = scrape(several.metrics_url)
    told = {"workers": 2, "store_up": 1, "store_processes": 2, "store_failures_total": 0}
    assert {it: total(text, f"gateway_{it}") for it in told} == told


def test_each_has_its_share_while_the_store_is_down_and_all_is_shared_afterwards(
    gateways: list[Gateway], server: StoreServer, folder: Path
) -> None:
    phases = (Phase("gone", 2.0, StoreServer.stop), Phase("back", 2.0, StoreServer.start))
    run = Run("short", "python", LIMIT, phases, OFFER)
    facts = played(run, python_load(print), server, gateways, folder)
    print(facts)
    for phase in facts["phases"]:
        assert phase["forwarded"] <= most(phase, processes=len(gateways))
        assert min(phase["shares"]) > 0
    wait_until(lambda: all(up(gateway) == 1 for gateway in gateways))
    for gateway in gateways:
        log = gateway.log.read_text()
        assert log.index("store_lost") < log.index("store_back")
        assert total(scrape(gateway.metrics_url), "gateway_store_failures_total") > 0


def test_a_frozen_store_stops_no_client(
    hasty: list[Gateway], server: StoreServer, folder: Path
) -> None:
    phases = (Phase("frozen", 2.0, StoreServer.freeze), Phase("thawed", 1.0, StoreServer.thaw))
    run = Run("short", "python", LIMIT, phases, OFFER)
    facts = played(run, python_load(print), server, hasty, folder)
    print(facts)
    assert all(min(phase["shares"]) > 0 for phase in facts["phases"])
    wait_until(lambda: all(up(gateway) == 1 for gateway in hasty))


def test_openings_wait_for_openings_at_other_replicas(
    sandbox: Sandbox, opening: list[Gateway], reach: Reach
) -> None:
    """Thirty producers are opened at each of two gateways: all succeed, and none too early."""
    clients = [open_client(reach(sandbox, through=it).url) for it in opening]
    began = time.monotonic()
    with ThreadPoolExecutor(len(clients)) as pool:
        made = list(pool.map(lambda client: [_open(client) for _ in range(30)], clients))
    seconds = time.monotonic() - began
    assert [len(each) for each in made] == [30, 30]
    # Sixty may not be open earlier than that, however fast the machine is.
    assert seconds > (60 - 2 - 2) / 20
    figures = [scrape(it.metrics_url) for it in opening]
    assert all(total(it, "gateway_rule_waits_total", rule="opens") > 0 for it in figures)
    assert all(total(it, "gateway_rule_refused_total", rule="opens") == 0 for it in figures)
    for client in clients:
        close_client(client)


def _open(client: Client) -> Producer:
    return client.create_producer(fresh_topic())
