"""How late the event loop is."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from gateway.system.delays import INTERVAL, measure_delays


async def test_a_wake_up_in_time_is_not_late(autojump_clock: trio.testing.MockClock) -> None:
    noted: list[float] = []
    with trio.move_on_after(5.5 * INTERVAL):
        await measure_delays(noted.append)
    assert noted == [0.0] * 5


async def test_work_that_keeps_the_loop_is_noted(mock_clock: trio.testing.MockClock) -> None:
    noted: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(measure_delays, noted.append)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(INTERVAL + 0.25)
        await trio.testing.wait_all_tasks_blocked()
        assert noted == [pytest.approx(0.25)]
        mock_clock.jump(10 * INTERVAL)
        await trio.testing.wait_all_tasks_blocked()
        assert len(noted) <= 3  # a long delay counts once or twice, not ten times
        nursery.cancel_scope.cancel()
