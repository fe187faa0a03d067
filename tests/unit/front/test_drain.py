"""Who is moved when the gateway stops."""

from __future__ import annotations

from typing import cast

import trio
import trio.testing

from gateway.front.drain import PAIRS_PER_SECOND, drain
from gateway.plane.reactor import Reactor


class Leaver:
    """Stands for a pair: needs some steps, and remembers when the first one was."""

    def __init__(self, steps: int = 1) -> None:
        self.steps = steps
        self.began: float | None = None


class Plane:
    """Stands for the reactor."""

    def __init__(self, *leavers: Leaver) -> None:
        self.pairs = set(leavers)

    def leave(self, leaver: Leaver) -> None:
        if leaver.began is None:
            leaver.began = trio.current_time()
        leaver.steps -= 1
        if leaver.steps <= 0:
            self.pairs.discard(leaver)


async def drained(plane: Plane, seconds: float) -> float:
    """How long it took."""
    began = trio.current_time()
    await drain(cast(Reactor, plane), seconds)
    return trio.current_time() - began


async def test_nobody_is_there(autojump_clock: trio.testing.MockClock) -> None:
    assert await drained(Plane(), 10) == 0


async def test_each_is_asked_until_it_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    leavers = [Leaver(steps) for steps in (1, 5, 20)]
    await drained(Plane(*leavers), 10)
    assert [leaver.steps for leaver in leavers] == [0, 0, 0]


async def test_the_begins_are_spread(autojump_clock: trio.testing.MockClock) -> None:
    leavers = [Leaver() for _ in range(PAIRS_PER_SECOND)]
    await drained(Plane(*leavers), 10)
    times = sorted(leaver.began or 0 for leaver in leavers)
    first_half = sum(time - times[0] < 0.5 for time in times)
    assert 0.4 < first_half / len(times) < 0.6
    assert 0.9 < times[-1] - times[0] < 1.1


async def test_all_begin_within_half_of_the_time(autojump_clock: trio.testing.MockClock) -> None:
    leavers = [Leaver() for _ in range(10 * PAIRS_PER_SECOND)]
    assert 0.9 < await drained(Plane(*leavers), 2) < 1.1


async def test_no_time_at_all(autojump_clock: trio.testing.MockClock) -> None:
    leavers = [Leaver() for _ in range(100)]
    assert await drained(Plane(*leavers), 0) < 0.05


async def test_one_that_comes_meanwhile_does_not_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    plane = Plane(*[Leaver() for _ in range(PAIRS_PER_SECOND)])
    late = Leaver()

    async def comes() -> None:
        await trio.sleep(0.105)
        plane.pairs.add(late)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(comes)
        began = trio.current_time()
        await drained(plane, 10)
    assert late.began is not None
    assert late.began - began < 0.13
