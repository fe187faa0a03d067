"""The book of reservations itself; tests/conformance has what any store does."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.reservations import (
    ACTIVE,
    RESERVATION_SECONDS,
    Reservations,
    Reserved,
    UnitRequest,
)

ROUNDING = 1e-6


def _ask(
    units: float = 1e12, *, rate: float = 100, burst: float = 10, owed: float = 0
) -> UnitRequest:
    return UnitRequest("limit", rate, burst, units, owed)


def _one(book: Reservations, process: str, ask: UnitRequest, now: float) -> Reserved:
    (answer,) = book.reserve(process, [ask], now)
    return answer


# -- forgetting --------------------------------------------------------------------------------


def test_a_limit_at_rest_is_forgotten() -> None:
    book = Reservations()
    _one(book, "a", _ask(1), 0)
    book.reserve("a", [], ACTIVE - 0.01)
    assert len(book) == 1
    book.reserve("a", [], ACTIVE)
    assert len(book) == 0


def test_a_limit_is_kept_until_all_units_are_earned() -> None:
    book = Reservations()
    _one(book, "a", _ask(0, owed=300), 0)
    book.reserve("a", [], 2.99)
    assert len(book) == 1
    book.reserve("a", [], 3)
    assert len(book) == 0


def test_a_used_limit_is_queued_once() -> None:
    book = Reservations()
    for step in range(1000):
        _one(book, "a", _ask(1), step * RESERVATION_SECONDS)
    assert len(book) == len(book._resting) == 1


def test_processes_that_ended_are_forgotten_while_others_go_on() -> None:
    book = Reservations()
    for process in range(1000):
        _one(book, str(process), _ask(1), process * 0.1)
    assert len(book._limits["limit"].requested_at) <= 1 + ACTIVE / 0.1


times = st.lists(st.floats(0, 3), max_size=40).map(lambda pauses: list(accumulate(pauses)))
keys = st.sampled_from("abc")
questions = st.tuples(keys, st.sampled_from("pq"), st.floats(0, 50), st.floats(-50, 50))


@given(data=st.data(), at=times)
def test_forgetting_limits_changes_no_answer(data: st.DataObject, at: list[float]) -> None:
    """One book forgets at each request, the other one never."""
    forgetting, keeping = Reservations(), Reservations()
    for now in at:
        key, process, units, owed = data.draw(questions)
        ask = UnitRequest(key, 10, 5, units, owed)
        keeping._resting.clear()
        expected = _one(keeping, process, ask, now)
        assert _one(forgetting, process, ask, now) == pytest.approx(expected)


# -- reserving ---------------------------------------------------------------------------------

moves = st.lists(
    st.tuples(st.integers(0, 4), st.floats(0, 0.3), st.floats(0.1, 100), st.floats(0, 1)),
    min_size=1,
    max_size=60,
)


@given(rate=st.floats(0.1, 1e6), burst=st.floats(1, 1e5), began=st.floats(0, 1e7), moves=moves)
def test_used_units_never_exceed_rate_and_burst(
    rate: float, burst: float, began: float, moves: list[tuple[int, float, float, float]]
) -> None:
    """Some part of each reservation is given back later."""
    book, now = Reservations(), began
    used: list[tuple[float, float]] = []
    unused = [0.0] * 5
    for process, pause, units, part in moves:
        now += pause
        ask = _ask(units, rate=rate, burst=burst, owed=-unused[process])
        answer = _one(book, str(process), ask, now)
        used.append((now - began + answer.delay, answer.units * part))
        unused[process] = answer.units * (1 - part)
    used.sort()
    # Units that are given back were reserved, and may be used late: they come in addition.
    late = max(rate * RESERVATION_SECONDS, burst) + 5
    for (due, _), total in zip(used, accumulate(units for _, units in used), strict=True):
        assert total <= (rate * due + burst + late) * (1 + ROUNDING)


@given(moves=moves)
def test_a_later_request_is_not_served_first(moves: list[tuple[int, float, float, float]]) -> None:
    book, now, last = Reservations(), 0.0, 0.0
    for process, pause, units, _ in moves:
        now += pause
        due = now + _one(book, str(process), _ask(units), now).delay
        assert due >= last - ROUNDING
        last = due


@given(moves=moves)
def test_a_reservation_has_one_unit_at_least_and_no_more_than_wanted(
    moves: list[tuple[int, float, float, float]],
) -> None:
    book, now = Reservations(), 0.0
    for process, pause, units, _ in moves:
        now += pause
        answer = _one(book, str(process), _ask(units), now)
        assert 1 <= answer.units <= max(1, units)


@given(owed=st.lists(st.floats(0, 1e9), min_size=1, max_size=20))
def test_a_debt_delays_until_all_of_it_is_earned(owed: list[float]) -> None:
    book, total = Reservations(), 0.0
    for amount in owed:
        total += amount
        delay = _one(book, "a", _ask(0, owed=amount), 0).delay
        assert delay == pytest.approx(max(0.0, total - 10) / 100)


def test_a_busy_process_gets_what_others_leave() -> None:
    """Four processes use 40 of 100 units per second. The fifth asks five times per reservation."""
    book, got, asked = Reservations(), 0.0, 0
    for turn in range(100):
        now = turn * RESERVATION_SECONDS
        for process in range(4):
            _one(book, str(process), _ask(1), now)
        answer = Reserved(0, 0)
        while not answer.delay:
            answer = _one(book, "greedy", _ask(), now)
            asked, got = asked + 1, got + answer.units
    assert got >= 0.95 * 60 * 10
    assert asked <= 5 * 100
