"""Who gets the next long answer."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from gateway.admin.slots import LifoSemaphore

pytestmark = pytest.mark.trio


async def test_the_last_task_to_arrive_comes_next(autojump_clock: trio.testing.MockClock) -> None:
    semaphore, order = LifoSemaphore(1), list[int]()

    async def have(number: int) -> None:
        await trio.sleep(number)
        async with semaphore.held():
            order.append(number)
            await trio.sleep(10)

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(have, number)
    assert order == [0, 3, 2, 1]


@pytest.mark.parametrize("after", [0.5, 1.0, 1.5])
async def test_a_cancelled_task_does_not_keep_the_semaphore(
    autojump_clock: trio.testing.MockClock, after: float
) -> None:
    """It is cancelled before it acquires the semaphore, at the same moment, and after."""
    semaphore = LifoSemaphore(1)

    async def give_up() -> None:
        with trio.move_on_after(after):
            async with semaphore.held():
                await trio.sleep(1)

    async with trio.open_nursery() as nursery, semaphore.held():
        nursery.start_soon(give_up)
        await trio.sleep(1)
    for _ in range(2):
        with trio.fail_after(1):
            async with semaphore.held():
                pass
