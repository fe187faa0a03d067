"""The drain moves clients when the gateway stops."""

from __future__ import annotations

from typing import cast

import trio
import trio.testing

from gateway.front.drain import PAIRS_PER_SECOND, drain
from gateway.plane.reactor import Reactor


class Leaver:
    """A pair that is over after some steps. `began`: time of the first step."""

    def __init__(self, steps: int = 1) -> None:
        self.steps = steps
        self.began: float | None = None


class Plane:
    """The part of a reactor that the drain uses."""

    def __init__(self, *leavers: Leaver) -> None:
        self.pairs = set(leavers)
        self.lingering = 0

    @property
    def is_empty(self) -> bool:
        return not self.pairs and not self.lingering

    def leave(self, leaver: Leaver) -> None:
        if leaver.began is None:
            leaver.began = trio.current_time()
        leaver.steps -= 1
        if leaver.steps <= 0:
            self.pairs.discard(leaver)


async def drained(plane: Plane, seconds: float) -> float:
    """Return the seconds that a drain takes."""
    began = trio.current_time()
    await drain(cast(Reactor, plane), seconds)
    return trio.current_time() - began


async def test_a_drain_without_pairs_ends_at_once(autojump_clock: trio.testing.MockClock) -> None:
    assert await drained(Plane(), 10) == 0


async def test_each_pair_takes_steps_until_it_is_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    leavers = [Leaver(steps) for steps in (1, 5, 20)]
    await drained(Plane(*leavers), 10)
    assert [leaver.steps for leaver in leavers] == [0, 0, 0]


async def test_first_steps_are_spread_over_time(autojump_clock: trio.testing.MockClock) -> None:
    leavers = [Leaver() for _ in range(PAIRS_PER_SECOND)]
    await drained(Plane(*leavers), 10)
    times = sorted(leaver.began or 0 for leaver in leavers)
    first_half = sum(time - times[0] < 0.5 for time in times)
    assert 0.4 < first_half / len(times) < 0.6
    assert 0.9 < times[-1] - times[0] < 1.1


async def test_all_pairs_begin_within_half_of_the_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    leavers = [Leaver() for _ in range(10 * PAIRS_PER_SECOND)]
    assert 0.9 < await drained(Plane(*leavers), 2) < 1.1


async def test_without_time_all_pairs_move_at_once(autojump_clock: trio.testing.MockClock) -> None:
    leavers = [Leaver() for _ in range(100)]
    assert await drained(Plane(*leavers), 0) < 0.05


async def test_a_pair_that_opens_during_the_drain_moves_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    plane = Plane(*[Leaver() for _ in range(PAIRS_PER_SECOND)])
    late = Leaver()

    async def add_pair() -> None:
        await trio.sleep(0.105)
        plane.pairs.add(late)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add_pair)
        began = trio.current_time()
        await drained(plane, 10)
    assert late.began is not None
    assert late.began - began < 0.13


async def test_a_drain_waits_for_connections_that_linger(
    autojump_clock: trio.testing.MockClock,
) -> None:
    plane = Plane()
    plane.lingering = 1

    async def close() -> None:
        await trio.sleep(0.5)
        plane.lingering = 0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(close)
        assert 0.5 <= await drained(plane, 10) < 0.55
