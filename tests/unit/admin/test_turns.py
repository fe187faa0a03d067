"""Who may stay, and who has a turn."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from gateway.admin.turns import Places, Turns

pytestmark = pytest.mark.trio


def taken(places: Places, number: int) -> list[trio.CancelScope]:
    """So many that wait."""
    scopes = [trio.CancelScope() for _ in range(number)]
    for scope in scopes:
        places.take()
        places.waits(scope)
    return scopes


async def test_who_has_waited_longest_makes_room() -> None:
    places = Places(3)
    first, second, third = taken(places, 3)
    places.waits(first)  # anew
    places.take()
    assert [it.cancel_called for it in (first, second, third)] == [False, True, False]


async def test_who_is_busy_stays() -> None:
    places = Places(2)
    scopes = taken(places, 2)
    for scope in scopes:
        places.busy(scope)
    places.take()
    assert not places.make_room()
    assert not any(it.cancel_called for it in scopes)


async def test_who_has_left_makes_no_room() -> None:
    places = Places(2)
    first, second = taken(places, 2)
    places.leave(first)
    told = []
    for _ in range(2):
        places.take()
        told.append((first.cancel_called, second.cancel_called))
    assert told == [(False, False), (False, True)]


async def test_who_comes_last_has_the_next_turn(autojump_clock: trio.testing.MockClock) -> None:
    turns, order = Turns(1), list[int]()

    async def have(number: int) -> None:
        await trio.sleep(number)
        async with turns.one():
            order.append(number)
            await trio.sleep(10)

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(have, number)
    assert order == [0, 3, 2, 1]


@pytest.mark.parametrize("after", [0.5, 1.0, 1.5])
async def test_who_gives_up_takes_no_turn_along(
    autojump_clock: trio.testing.MockClock, after: float
) -> None:
    """Before it is given one, at the same moment, and in the middle of it."""
    turns = Turns(1)

    async def give_up() -> None:
        with trio.move_on_after(after):
            async with turns.one():
                await trio.sleep(1)

    async with trio.open_nursery() as nursery, turns.one():
        nursery.start_soon(give_up)
        await trio.sleep(1)
    for _ in range(2):
        with trio.fail_after(1):
            async with turns.one():
                pass
