"""What the parent answers its workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import build
from gateway.policy.reservations import Ask
from gateway.workers import briefing
from gateway.workers.crew import Crew, Start
from gateway.workers.parent import Parent

from .test_briefing import SMALLEST


@pytest.fixture
def parent() -> Parent:
    configuration, _ = build(SMALLEST, Path())
    assert configuration is not None
    return Parent(configuration, 2, trace=True, clock=lambda: 0.0)


def asked(parent: Parent, worker: int, subject: str, value: Any = None) -> Any:
    (answer,) = parent._handlers(worker)[subject](value)
    return answer


def test_each_worker_is_told_who_it_is_and_all_have_one_secret(parent: Parent) -> None:
    first, second = (briefing.read(asked(parent, it, "briefing")) for it in (1, 2))
    assert (first.worker, second.worker) == (1, 2)
    assert first.trace
    assert first.configuration == second.configuration
    assert first.seals == second.seals
    assert len(first.seals["main"]) == 32


def test_workers_share_one_book_of_reservations(parent: Parent) -> None:
    """As many units a second as the rate says, whoever asks for them."""
    ask = list(Ask("limit", 1.0, 1.0, 1.0))
    delays = [asked(parent, it, "reserve", [ask])[0].delay for it in (1, 2, 1, 2)]
    assert delays == [0, 1, 2, 3]


def test_a_beat_is_answered_by_how_many_run(parent: Parent) -> None:
    parent._crew = Crew(2, Start([], [], parent._handlers))
    assert asked(parent, 1, "beat") == 0
