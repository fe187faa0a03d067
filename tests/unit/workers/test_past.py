"""What workers have counted stays counted."""

from __future__ import annotations

import pytest

from gateway.workers import past
from gateway.workers.merging import merged
from gateway.workers.past import Life, Past

FIRST, SECOND, AGAIN = Life(1, 0), Life(2, 0), Life(1, 1)


def figures(count: int, open: int) -> list[str]:
    return [f"# TYPE sent_total counter\nsent_total {count}\n# TYPE open gauge\nopen {open}\n"]


def total(found: Past) -> dict[str, float]:
    lines = b"".join(merged(found.texts())).decode().splitlines()
    samples = (line.split(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def bury(found: Past, *living: Life) -> None:
    for _ in found.bury(frozenset(living)):
        pass


@pytest.fixture
def told() -> Past:
    """Two have told of themselves."""
    found = Past()
    found.take({FIRST: figures(10, 1), SECOND: figures(20, 2)})
    return found


def test_all_that_live_count(told: Past) -> None:
    bury(told, FIRST, SECOND)
    assert total(told) == {"sent_total": 30, "open": 3}


def test_who_tells_again_counts_once(told: Past) -> None:
    told.take({FIRST: figures(11, 0)})
    assert total(told) == {"sent_total": 31, "open": 2}


def test_what_one_has_counted_that_ended_stays_and_what_it_had_open_goes(told: Past) -> None:
    bury(told, SECOND, AGAIN)
    assert total(told) == {"sent_total": 30, "open": 2}
    told.take({AGAIN: figures(1, 1)})
    assert total(told) == {"sent_total": 31, "open": 3}
    bury(told, SECOND)
    bury(told, SECOND)
    assert total(told) == {"sent_total": 31, "open": 2}


def test_a_burial_that_is_given_up_is_begun_anew(told: Past) -> None:
    next(told.bury(frozenset({SECOND})))
    bury(told, SECOND)
    assert total(told) == {"sent_total": 30, "open": 2}


def test_the_past_is_bounded(told: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "LARGEST", 10)
    bury(told, SECOND)
    assert total(told) == {"sent_total": 20, "open": 2}
