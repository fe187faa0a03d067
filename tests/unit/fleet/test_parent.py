"""A worker shares limits through its parent over a real socket pair."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from gateway.fleet.parent import ParentStore
from gateway.fleet.store import Store, StoreError
from gateway.policy.dimensions import Dimension
from gateway.policy.keys import Key
from gateway.policy.reservations import Reservations, Reserved, UnitRequest
from gateway.workers.channel import LARGEST, Channel, Handler

ASKS = [UnitRequest("a", 100.0, 10.0, 10.0), UnitRequest("b", 5.0, 1.0, 0.0, 0.5)]


class Book:
    """The reservations of a parent whose clock does not move."""

    def __init__(self) -> None:
        self.limits = Reservations()

    def reserve(self, asks: Any) -> Iterator[Any]:
        yield self.limits.reserve("1", [UnitRequest(*it) for it in asks], 0.0)


@asynccontextmanager
async def store(**handlers: Handler) -> AsyncIterator[tuple[Store, socket.socket]]:
    ours, theirs = socket.socketpair()
    ends = [trio.SocketStream(trio.socket.from_stdlib_socket(it)) for it in (ours, theirs)]
    worker, parent = Channel(ends[0], {}), Channel(ends[1], handlers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        nursery.start_soon(parent.run)
        yield ParentStore(worker.ask), theirs
        nursery.cancel_scope.cancel()


async def test_a_worker_gets_the_parents_reservations() -> None:
    async with store(reserve=Book().reserve) as (shared, _):
        found = await shared.reserve(ASKS)
    assert found == Reservations().reserve("1", ASKS, 0.0)
    assert [type(it) for it in found] == [Reserved, Reserved]


async def test_reserved_units_delay_later_requests() -> None:
    async with store(reserve=Book().reserve) as (shared, _):
        asks = [UnitRequest("a", 100.0, 10.0, 10.0)] * 3
        delays = [it.delay for it in await shared.reserve(asks) if isinstance(it, Reserved)]
    assert delays == pytest.approx([0.0, 0.1, 0.2])


async def test_a_limit_whose_key_has_a_long_name_is_shared() -> None:
    """A client may choose a topic name that is longer than the largest message."""
    key = Key("topics", Dimension.PUBLISH_MESSAGES, ("persistent://a/b/" + "x" * LARGEST,))
    async with store(reserve=Book().reserve) as (shared, _):
        found = await shared.reserve([ASKS[0], UnitRequest(key.text, 100.0, 10.0, 10.0)])
    assert found == [Reserved(10.0, 0.0), Reserved(10.0, 0.0)]


async def test_a_heartbeat_returns_the_number_of_processes() -> None:
    async with store(beat=lambda _: [3]) as (shared, _):
        assert await shared.beat() == 3
        await shared.close()


async def test_calls_fail_when_the_parent_is_gone() -> None:
    async with store() as (shared, theirs):
        theirs.shutdown(socket.SHUT_RDWR)
        for ask in (shared.beat, lambda: shared.reserve(ASKS)):
            with pytest.raises(StoreError, match="is gone"):
                await ask()


async def test_calls_fail_when_the_parent_fails() -> None:
    async with store(reserve=lambda asks: [1 / 0 for _ in asks]) as (shared, _):
        with pytest.raises(StoreError, match="ZeroDivisionError"):
            await shared.reserve(ASKS)


async def test_one_failed_limit_does_not_fail_the_others() -> None:
    async with store(reserve=lambda asks: [[[1.0, 0.5], "the parent failed"]]) as (shared, _):
        good, bad = await shared.reserve(ASKS)
    assert good == Reserved(1.0, 0.5)
    assert isinstance(bad, StoreError)
    assert str(bad) == "the parent failed"


async def test_a_request_that_is_too_large_does_not_block_later_ones() -> None:
    async with store(reserve=Book().reserve) as (shared, _):
        with pytest.raises(StoreError, match="at most"):
            await shared.reserve([UnitRequest("x" * LARGEST, 100.0, 10.0, 10.0)])
        assert len(await shared.reserve(ASKS)) == 2


async def test_a_cancelled_request_can_be_repeated() -> None:
    async with store(reserve=Book().reserve) as (shared, _):
        with trio.move_on_after(0) as scope:
            await shared.reserve(ASKS)
        assert scope.cancelled_caught
        assert len(await shared.reserve(ASKS)) == 2
