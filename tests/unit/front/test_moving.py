"""Clients are moved before the gateway's own credential expires at their brokers, and by the age
of their connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import pytest
import trio
import trio.testing

from gateway.front.drain import STEP
from gateway.front.moving import AGE_SPREAD, AHEAD, Moving
from gateway.plane.pair import Pair
from gateway.plane.reactor import Reactor

Clock = trio.testing.MockClock


class FakeSession:
    may_move = True


class FakePair:
    """A pair that is over after some steps of leaving."""

    def __init__(self, steps: int = 1) -> None:
        self.session = FakeSession()
        self.steps = steps

    @property
    def over(self) -> bool:
        return self.steps <= 0


@dataclass
class FakeReactor:
    """Counts the steps that it is asked for. `left`: when, and for which pair."""

    left: list[tuple[float, FakePair]] = field(default_factory=list)

    def leave(self, pair: FakePair) -> None:
        self.left.append((trio.current_time(), pair))
        pair.steps -= 1

    def began(self, pair: FakePair) -> float:
        """Return when the first step was asked for."""
        return min(at for at, it in self.left if it is pair)


class Trial:
    def __init__(self) -> None:
        self.reactor = FakeReactor()
        self.moving = Moving(cast(Reactor, self.reactor))
        self.began = trio.current_time()

    def add(self, left: float, pair: FakePair | None = None) -> FakePair:
        pair = FakePair() if pair is None else pair
        self.moving.add(cast(Pair, pair), left)
        return pair

    def moved(self, pair: FakePair) -> float:
        """Return after how many seconds the move of a pair began."""
        return self.reactor.began(pair) - self.began


@asynccontextmanager
async def running() -> AsyncIterator[Trial]:
    trial = Trial()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trial.moving.run)
        yield trial
        nursery.cancel_scope.cancel()


@pytest.fixture
def autojump_clock() -> Clock:
    return Clock(autojump_threshold=0)


# -- when --


@pytest.mark.parametrize("left", [0.01, 1.0, 10.0, 2 * AHEAD, 300.0, 1e6])
async def test_a_pair_is_moved_before_its_time_is_over_and_not_much_before(
    left: float, autojump_clock: Clock
) -> None:
    async with running() as trial:
        pair = trial.add(left)
        await trio.sleep(left + 1)
        assert pair.over
        assert left - min(AHEAD, left / 2) <= trial.moved(pair) + 1e-6
        assert trial.moved(pair) < left


@pytest.mark.parametrize("left", [0.0, -1.0, -1e6])
async def test_a_pair_whose_time_is_over_is_moved_at_once(
    left: float, autojump_clock: Clock
) -> None:
    async with running() as trial:
        pair = trial.add(left)
        await trio.sleep(2 * STEP)
        assert pair.over


async def test_a_pair_without_an_end_is_never_moved(autojump_clock: Clock) -> None:
    async with running() as trial:
        trial.add(float("inf"))
        soon = trial.add(10.0)
        await trio.sleep(80_000)
        assert [pair for _, pair in trial.reactor.left] == [soon]


async def test_pairs_move_by_their_ends_and_not_by_their_beginnings(autojump_clock: Clock) -> None:
    async with running() as trial:
        late = trial.add(3000.0)
        await trio.sleep(1)
        soon = trial.add(100.0)
        await trio.sleep(3000)
        assert [pair for _, pair in trial.reactor.left] == [soon, late]


async def test_pairs_of_one_credential_do_not_move_at_once(autojump_clock: Clock) -> None:
    """They end at the same time; half of the time before is theirs."""
    async with running() as trial:
        pairs = [trial.add(300.0) for _ in range(300)]
        await trio.sleep(300)
        moved = sorted(trial.moved(pair) for pair in pairs)
        assert all(pair.over for pair in pairs)
        assert moved[0] >= 300 - AHEAD
        assert moved[-1] <= 300 - AHEAD / 2 + 1
        gaps = [after - before for before, after in pairwise(moved)]
        assert max(gaps) < 5 * (AHEAD / 2 / 300) + 2 * STEP


# -- age --


async def test_pairs_move_at_about_their_age_and_not_together(autojump_clock: Clock) -> None:
    async with running() as trial:
        pairs = [FakePair() for _ in range(300)]
        for pair in pairs:
            pair.session.may_move = False  # which is about credentials
            trial.moving.age(cast(Pair, pair), 3600.0)
        await trio.sleep(2 * 3600)
        moved = sorted(trial.moved(pair) for pair in pairs)
        assert 3600 * (1 - AGE_SPREAD) <= moved[0] < moved[-1] <= 3600 * (1 + AGE_SPREAD) + STEP
        gaps = [after - before for before, after in pairwise(moved)]
        assert max(gaps) < 5 * (2 * AGE_SPREAD * 3600 / 300)


async def test_aged_pairs_that_have_ended_are_forgotten(autojump_clock: Clock) -> None:
    async with running() as trial:
        for _ in range(10_000):
            pair = FakePair()
            trial.moving.age(cast(Pair, pair), 86_400.0)
            pair.steps = 0
        assert len(trial.moving._due) <= 1000


# -- steps --


async def test_a_pair_takes_its_steps_with_pauses_until_it_is_over(autojump_clock: Clock) -> None:
    async with running() as trial:
        pair = trial.add(1.0, FakePair(steps=5))
        await trio.sleep(2)
        assert pair.over
        times = [at for at, _ in trial.reactor.left]
        assert len(times) == 5
        pauses = [after - before for before, after in pairwise(times)]
        assert min(pauses) >= STEP - 1e-9


async def test_pairs_that_are_added_hurry_nobody_who_leaves(autojump_clock: Clock) -> None:
    """A storm of new connections would take all pauses from those that leave."""
    async with running() as trial:
        trial.add(-1.0, FakePair(steps=1000))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(100):
            trial.add(1e6)
            await trio.sleep(STEP / 10)
        assert len(trial.reactor.left) <= 100 / 10 + 2


async def test_many_that_leave_do_not_keep_other_tasks_waiting(autojump_clock: Clock) -> None:
    async with running() as trial:
        for _ in range(1000):
            trial.add(-1.0, FakePair(steps=2))
        seen = set[int]()
        while len(trial.reactor.left) < 1000:
            await trio.lowlevel.checkpoint()
            seen.add(len(trial.reactor.left))
        assert len(seen) > 5


async def test_a_pair_that_has_ended_by_itself_is_left_alone(autojump_clock: Clock) -> None:
    async with running() as trial:
        waiting, leaving = trial.add(100.0), trial.add(-1.0, FakePair(steps=100))
        await trio.sleep(5 * STEP)
        waiting.steps = leaving.steps = 0
        steps = len(trial.reactor.left)
        await trio.sleep(200)
        assert len(trial.reactor.left) == steps


async def test_a_pair_waits_for_a_newer_credential(autojump_clock: Clock) -> None:
    async with running() as trial:
        pair = FakePair()
        pair.session.may_move = False
        trial.add(10.0, pair)
        await trio.sleep(60)
        assert trial.reactor.left == []
        pair.session.may_move = True
        await trio.sleep(1.1)
        assert pair.over


async def test_one_that_waits_for_a_newer_credential_keeps_no_other(autojump_clock: Clock) -> None:
    async with running() as trial:
        stuck = FakePair()
        stuck.session.may_move = False
        trial.add(-1.0, stuck)
        other = trial.add(10.0)
        await trio.sleep(10)
        assert other.over


# -- memory --


async def test_pairs_that_have_ended_are_forgotten_long_before_their_time(
    autojump_clock: Clock,
) -> None:
    """Clients that come and go, with a credential that is valid for a day."""
    async with running() as trial:
        staying = [trial.add(86_400.0) for _ in range(100)]
        for _ in range(10_000):
            trial.add(86_400.0).steps = 0
        assert len(trial.moving._due) <= 1000
        await trio.sleep(86_400)
        assert all(pair.over for pair in staying)
        assert trial.moving._due == []
        assert trial.moving._leaving == set()
