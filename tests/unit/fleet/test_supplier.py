"""When the supplier calls the store, and what it does without an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from gateway.fleet.store import StoreError
from gateway.fleet.supplier import Supplier
from gateway.policy.reservations import Reserved, UnitRequest
from gateway.policy.supply import AGAIN, AT_ONCE, OnLoss, SharedMeter, Supply

Lines = Sequence[MutableMapping[str, Any]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Return the captured log lines."""
    structlog.reset_defaults()
    with capture_logs() as captured:
        yield captured


class Store:
    """Grants every request after `slow` seconds, unless `fails` holds an error text."""

    def __init__(self) -> None:
        self.calls: list[list[UnitRequest]] = []
        self.beats = 0
        self.slow = 0.0
        self.fails = ""
        self.spoilt: set[str] = set()
        self.processes = 3

    async def reserve(self, asks: Sequence[UnitRequest]) -> list[Reserved | StoreError]:
        self.calls.append(list(asks))
        await self._answers()
        spoilt = StoreError("holds something else")
        return [spoilt if it.key in self.spoilt else Reserved(it.units, 0.0) for it in asks]

    async def beat(self) -> int:
        self.beats += 1
        await self._answers()
        return self.processes

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        raise AssertionError("the supplier must not run the store")

    async def close(self) -> None:
        raise AssertionError("the supplier must not close the store")

    async def _answers(self) -> None:
        await trio.sleep(self.slow)
        if self.fails:
            raise StoreError(self.fails)


class Scene:
    def __init__(self) -> None:
        self.store = Store()
        self.supply = Supply()
        self.told: list[Sequence[Hashable] | None] = []
        self.supplier = Supplier(
            self.store, self.supply, self.told.append, timeout=0.05, clock=trio.current_time
        )

    @asynccontextmanager
    async def runs(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.supplier.run)
            await trio.sleep(0.1)
            yield
            nursery.cancel_scope.cancel()

    def meter(self, name: str) -> SharedMeter:
        return self.supply.meter(name, 100, 10, OnLoss.LOCAL_SHARE, owner=name)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_simultaneous_requests_share_one_call(
    scene: Scene, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        meters = [scene.meter("a"), scene.meter("b")]
        await trio.sleep(0.1)
        assert [[ask.key for ask in call] for call in scene.store.calls] == [["a", "b"]]
        assert scene.told == [["a", "b"]]
        assert all(meter.available(trio.current_time()) >= 1 for meter in meters)
        assert scene.supplier.figures.asked == 2


async def test_many_limits_are_split_over_several_calls(
    scene: Scene, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        meters = [scene.meter(str(number)) for number in range(AT_ONCE * 2 + 1)]
        await trio.sleep(0.1)
        assert [len(call) for call in scene.store.calls] == [AT_ONCE, AT_ONCE, 1]
        assert all(meter.available(trio.current_time()) >= 1 for meter in meters)


async def test_idle_processes_send_only_heartbeats(scene: Scene, autojump_clock: MockClock) -> None:
    async with scene.runs():
        await trio.sleep(10)
        assert scene.store.calls == []
        assert 9 <= scene.store.beats <= 12
        assert scene.supply.processes == 3


async def test_unused_units_are_given_back(scene: Scene, autojump_clock: MockClock) -> None:
    async with scene.runs():
        meter = scene.meter("a")
        await trio.sleep(2)
        assert [call[0].owed for call in scene.store.calls] == [0.0, -1.0]
        assert meter.available(trio.current_time()) == 0


async def test_a_timeout_loses_the_store_and_notifies_all_owners(
    scene: Scene, lines: Lines, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        scene.store.slow = 60
        meter = scene.meter("a")
        await trio.sleep(0.2)
        assert scene.supply.lost
        assert scene.told == [None]
        assert meter.available(trio.current_time()) == pytest.approx(10 / 3)
        assert [(it["event"], it["reason"]) for it in lines] == [
            ("store_lost", "does not answer within 50 ms")
        ]


async def test_a_lost_store_is_retried_until_it_answers(
    scene: Scene, lines: Lines, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        scene.store.fails = "connection refused"
        scene.meter("a")
        await trio.sleep(5)
        assert scene.supply.lost
        assert 8 <= scene.store.beats <= 12
        calls = len(scene.store.calls)
        scene.store.fails = ""
        await trio.sleep(1)
        assert [it["event"] for it in lines] == ["store_lost", "store_back"]
        scene.meter("b")
        await trio.sleep(0.1)
        assert len(scene.store.calls) == calls + 1
        assert lines[0]["reason"] == "connection refused"


async def test_one_failing_limit_does_not_lose_the_store(
    scene: Scene, lines: Lines, autojump_clock: MockClock
) -> None:
    scene.store.spoilt.add("spoilt")
    async with scene.runs():
        spoilt, other = scene.meter("spoilt"), scene.meter("other")
        await trio.sleep(0.1)
        assert not scene.supply.lost
        assert (scene.supplier.figures.failures, scene.supplier.figures.refused) == (0, 1)
        assert spoilt.available(trio.current_time()) == pytest.approx(10 / 3)
        assert other.available(trio.current_time()) >= 1
        assert scene.told == [["spoilt", "other"]]
        for _ in range(50):
            spoilt.take(1, trio.current_time())
            spoilt.available(trio.current_time())
            await trio.sleep(0.1)
        scene.store.spoilt.clear()
        await trio.sleep(AGAIN)
        spoilt.available(trio.current_time())
        await trio.sleep(0.1)
        told = [(it["event"], it["limits"], it["first"], it.get("reason")) for it in lines]
        assert told == [
            ("limits_lost", 1, "spoilt", "holds something else"),
            ("limits_back", 1, "spoilt", None),
        ]


async def test_a_store_is_shared_again_when_all_processes_are_back(
    scene: Scene, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        scene.store.fails = "refuses connections"
        scene.meter("a")
        await trio.sleep(1)
        scene.store.fails, scene.store.processes = "", 1
        await trio.sleep(0.9)
        assert scene.supply.lost
        scene.store.processes = 3
        await trio.sleep(0.1)
        assert not scene.supply.lost


async def test_a_process_that_stays_away_is_not_waited_for_forever(
    scene: Scene, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        scene.store.fails = "refuses connections"
        scene.meter("a")
        await trio.sleep(1)
        scene.store.fails, scene.store.processes = "", 2
        await trio.sleep(2)
        assert not scene.supply.lost
        assert scene.supply.processes == 2


async def test_a_store_that_is_down_at_the_start_is_lost_at_once(
    scene: Scene, autojump_clock: MockClock
) -> None:
    scene.store.fails = "connection refused"
    async with scene.runs():
        assert scene.supply.lost
        assert scene.supplier.figures.failures == 1


async def test_calls_keep_their_distance_under_load(
    scene: Scene, autojump_clock: MockClock
) -> None:
    async with scene.runs():
        meter = scene.meter("a")
        until = trio.current_time() + 1
        while trio.current_time() < until:
            meter.take(1000, trio.current_time())
            await trio.sleep(0.001)
        assert len(scene.store.calls) <= 1 / 0.005 + 1
