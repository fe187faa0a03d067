"""Transactions of the Go and the Java client. (The Python client has none.)"""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.programs import Program
from tests.shared.transactions import take_over

from .brokers.standalone import Standalone
from .configurations import Configuration, ReachConfigured
from .fixtures import Route

PACE_MS = 4
SECONDS = 2.0


@pytest.fixture
def route(transactional: Standalone, reach_configured: ReachConfigured) -> Route:
    return reach_configured(transactional)


@pytest.fixture
def program(program: Program, configuration: Configuration) -> Program:
    """Return the program with the token of its configuration."""
    return replace(program, token=configuration.token)


@pytest.mark.parametrize("batch", [False, True], ids=["single", "batched"])
def test_committed_messages_arrive_and_aborted_ones_do_not(
    program: Program, transactional: Standalone, route: Route, logs: Path, batch: bool
) -> None:
    taken = take_over(
        program,
        transactional,
        route.url,
        logs,
        batch=batch,
        interval_ms=PACE_MS,
        meanwhile=lambda _source, _target: time.sleep(SECONDS),
    )
    taken.assert_exact()
    assert taken.transacted.errors == ()
    assert taken.transacted.moved == taken.arrived
    assert taken.transacted.aborted > 0


@pytest.mark.parametrize("batch", [False, True], ids=["single", "batched"])
def test_nothing_is_lost_when_topics_of_transactions_are_unloaded(
    program: Program, transactional: Standalone, route: Route, logs: Path, batch: bool
) -> None:
    """A transaction whose acknowledgement or message meets the close fails and is aborted, and its
    messages are taken again. (The broker may have stored messages without receipts, which then
    appear twice.)"""

    def unload(source: str, target: str) -> None:
        for topic in (source, target):
            time.sleep(SECONDS / 3)
            transactional.admin.unload(topic)
        time.sleep(SECONDS / 3)

    take_over(
        program,
        transactional,
        route.url,
        logs,
        batch=batch,
        interval_ms=PACE_MS,
        meanwhile=unload,
    ).assert_nothing_is_lost()
