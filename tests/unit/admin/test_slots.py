"""Which connections stay open, and who gets the next long answer."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from gateway.admin.slots import LifoSemaphore, Slots

pytestmark = pytest.mark.trio


def taken(slots: Slots, number: int) -> list[trio.CancelScope]:
    """Take slots for idle connections."""
    scopes = [trio.CancelScope() for _ in range(number)]
    for scope in scopes:
        slots.take()
        slots.mark_idle(scope)
    return scopes


async def test_the_longest_idle_connection_is_evicted() -> None:
    slots = Slots(3)
    first, second, third = taken(slots, 3)
    slots.mark_idle(first)  # again
    slots.take()
    assert [it.cancel_called for it in (first, second, third)] == [False, True, False]


async def test_a_busy_connection_stays() -> None:
    slots = Slots(2)
    scopes = taken(slots, 2)
    for scope in scopes:
        slots.mark_busy(scope)
    slots.take()
    assert not slots.evict()
    assert not any(it.cancel_called for it in scopes)


async def test_a_closed_connection_is_not_evicted() -> None:
    slots = Slots(2)
    first, second = taken(slots, 2)
    slots.release(first)
    told = []
    for _ in range(2):
        slots.take()
        told.append((first.cancel_called, second.cancel_called))
    assert told == [(False, False), (False, True)]


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
