"""The parent's answers to its workers, and how it stops them."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from gateway.config.load import build
from gateway.policy.reservations import UnitRequest
from gateway.workers import briefing
from gateway.workers import parent as module
from gateway.workers.crew import Crew, Start
from gateway.workers.parent import Parent

from .test_briefing import SMALLEST
from .test_crew import ACTING, PATIENCE, pids, until


@pytest.fixture
def parent() -> Parent:
    configuration, _ = build(SMALLEST, Path())
    assert configuration is not None
    return Parent(configuration, 2, trace=True, clock=lambda: 0.0)


def asked(parent: Parent, worker: int, subject: str, value: Any = None) -> Any:
    (answer,) = parent._handlers(worker)[subject](value)
    return answer


def test_each_worker_gets_its_number_and_the_common_secret(parent: Parent) -> None:
    first, second = (briefing.decode(asked(parent, it, "briefing")) for it in (1, 2))
    assert (first.worker, second.worker) == (1, 2)
    assert first.trace
    assert first.configuration == second.configuration
    assert first.seals == second.seals
    assert len(first.seals["main"]) == 32


def test_workers_share_one_book_of_reservations(parent: Parent) -> None:
    """The rate bounds the units per second of all workers together."""
    ask = list(UnitRequest("limit", 1.0, 1.0, 1.0))
    delays = [asked(parent, it, "reserve", [ask])[0].delay for it in (1, 2, 1, 2)]
    assert delays == [0, 1, 2, 3]


def test_a_failing_limit_does_not_fail_others(parent: Parent) -> None:
    good, bad = list(UnitRequest("good", 1.0, 1.0, 1.0)), list(UnitRequest("bad", 0.0, 1.0, 1.0))
    with capture_logs() as lines:
        answers = asked(parent, 1, "reserve", [good, bad, good])
    assert [it for it in answers if not isinstance(it, str)] == [(1.0, 0.0), (1.0, 1.0)]
    assert "ZeroDivisionError" in answers[1]
    assert [it["event"] for it in lines] == ["reservation_failed"]


def test_a_heartbeat_returns_the_number_of_running_workers(parent: Parent) -> None:
    parent._crew = Crew(2, Start([], [], parent._handlers))
    assert asked(parent, 1, "beat") == 0


@pytest.mark.tier("test")
async def test_workers_that_do_not_stop_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "command", lambda _: [*ACTING, "deaf"])
    monkeypatch.setattr(module, "MARGIN", 0.1)
    configuration, _ = build(SMALLEST | {"deadlines": {"grace": 0}}, Path())
    assert configuration is not None
    parent = Parent(configuration, 2)
    with capture_logs() as lines, trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(parent.serve)
            await until(lambda: [it["event"] for it in lines].count("worker_started") == 2)
            await pids(parent._crew, 2)
            signal.raise_signal(signal.SIGTERM)
    events = [(it["event"], it.get("workers")) for it in lines[2:]]
    assert events == [("stopping", None), ("workers_killed", 2), ("stopped", None)]
