"""Short soaks: the claims of `make soak` with fewer connections, in seconds."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from gateway.config.model import ResourceLimits
from gateway.wire.pulsar.field_counts import CHECKED_FROM
from gateway.wire.pulsar.frames import Kind
from tests.bench.machine import descriptors
from tests.soak import (
    churn,
    costs,
    growth,
    handshakes,
    idle,
    pauses,
    reload,
    requests,
    scrapes,
    stalled,
    topics,
)
from tests.soak.largest import BOUNDS
from tests.soak.report import MIB
from tests.soak.stalled import Stall

NOISE = 8 * MIB
"""Variation of the memory. A leaked pair costs 5 KB, and each test opens thousands."""


@pytest.fixture(autouse=True)
def _many_descriptors() -> None:
    descriptors()


def test_idle_pairs_cost_little_and_leave_nothing(tmp_path: Path) -> None:
    rounds = idle.run(500, tmp_path, hold=0, growth=NOISE)
    assert [it.pairs for it in rounds] == [500] * idle.ROUNDS


CLIENTS = Stall(to_client=True, pairs=100, bound=2 * MIB, socket_buffer=64 * 1024, pings=20)
BROKERS = Stall(to_client=False, pairs=30, bound=2 * MIB, blocks=32, pings=20)
"""The kernel takes some megabytes of each before anything waits in the gateway."""


@pytest.mark.parametrize("stall", [CLIENTS, BROKERS], ids=["clients", "brokers"])
def test_stalled_readers_stop_no_client_and_lose_nothing(tmp_path: Path, stall: Stall) -> None:
    """The first ones fill half of the part of the bound that slow peers have, and all others share
    the rest of it."""
    outcome = stalled.run(stall, tmp_path)
    assert outcome.kept > ResourceLimits.model_validate(stalled.limits(stall)).waiting // 2
    assert len(outcome.pings) == 20


def test_stalled_readers_that_are_closed_leave_nothing(tmp_path: Path) -> None:
    outcome = stalled.run(replace(CLIENTS, read_again=False), tmp_path)
    assert outcome.received < outcome.written


def test_clients_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    outcome = churn.run(
        2_500, tmp_path, warm_up=1_000, every=0.5, growth=NOISE, settled=0, blocks=30_000
    )
    assert outcome.redirects > 0
    assert outcome.refused > 0


def test_the_collections_of_a_gateway_are_reported(tmp_path: Path) -> None:
    (usual,) = pauses.run(200, tmp_path, 1.0, ["as it is"])
    assert usual.opening[0]["count"] > 0
    assert usual.connects > 0


def test_rules_are_reloaded_under_open_producers(tmp_path: Path) -> None:
    outcome = reload.run(tmp_path, rules=200, accounts=50, rounds=2)
    assert len(outcome.took) == 2
    assert all(len(it.trips) > 10 for it in (*outcome.quiet, *outcome.reloads))
    assert "200 rules" in reload.table(outcome)


def test_allowed_frames_take_little_memory() -> None:
    """The copies of a decided frame and its decoded form take at most twice the largest frame."""
    for row in costs.run([Kind.SUBSCRIBE, Kind.ERROR, Kind.SCALABLE_TOPIC_UPDATE]):
        assert row.largest > BOUNDS.command - 2 * CHECKED_FROM
        assert row.memory < 2 * BOUNDS.collected


def test_all_work_on_a_connection_can_be_soaked() -> None:
    growth.run(divided_by=200)


def test_handshakes_of_hostile_clients_leave_others_served(tmp_path: Path) -> None:
    outcomes = handshakes.run(tmp_path, 0.5)
    assert [it.title for it in outcomes] == list(handshakes.ATTACKS)
    assert all(it.connections > 0 for it in outcomes[1:])
    assert "| flood of whole handshakes |" in handshakes.table(outcomes)


def test_clients_are_served_while_somebody_looks(tmp_path: Path) -> None:
    """How long they wait is shown by `make soak`."""
    outcome = scrapes.run(tmp_path, 300, rounds=1, seconds=2.5, added=inf, step=inf)
    assert all(windows[0].trips for windows in outcome.windows.values())
    assert [it.path for it in outcome.scrapes] == list(scrapes.PATHS)
    assert "| usage records, feed, scraped |" in scrapes.table(outcome)


def test_topics_that_come_and_go_leave_no_more_than_their_bound(tmp_path: Path) -> None:
    outcome = topics.run(tmp_path, 300, waves=4, until_idle=False, settled=1.5, growth=NOISE)
    assert [look.producers for look in outcome.opened] == [300] * 4
    assert {look.producers for look in outcome.closed} == {0}
    assert "| wave 4, closed |" in topics.table(outcome)


def test_what_pods_ask_for_is_measured(tmp_path: Path) -> None:
    plan = requests.Plan(
        idle=(50, 100),
        rates=(500, 2_000),
        punctual=False,  # a test asserts no time
        seconds=0.5,
        samples=1,
        shakes=50,
        rules=100,
        flows=10,
        limits={"buffered": "32MiB", "remembered": "8MiB"},
    )
    edge, sidecar = outcomes = requests.run(tmp_path, ["edge", "sidecar"], plan)
    for outcome in outcomes:
        sizes = outcome.sizes
        assert all(0 < size.pss <= size.rss for size in sizes.values())
        assert sizes["started"].rss < sizes["idle, most"].rss < sizes["connections keep"].rss
        assert sizes["rules are read again"].pss > 1.2 * sizes["idle, most"].pss
        assert sizes["connections keep"].rss < sizes["slow peers wait"].rss
        assert outcome.whole > sizes["all of this, and rules are read again"].rss
        assert outcome.cores["idle, first"] < outcome.cores["2,000 messages/s"]
        assert all(cost > 0 for cost in outcome.costs.values())
    assert "1,000 TLS handshakes" in edge.costs.keys() - sidecar.costs.keys()
    assert "| 100 idle connections |" in requests.table(outcomes)
