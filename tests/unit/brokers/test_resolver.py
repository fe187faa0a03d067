from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from gateway.brokers.resolver import (
    FAILED_FOR,
    FRESH_FOR,
    KEPT_FOR,
    LOOK_UP_TIMEOUT,
    MOST_NAMES,
    MOST_NEW_LOOK_UPS,
    RENEWED_AFTER,
    Resolver,
)

pytestmark = pytest.mark.trio


class FakeNames:
    """A name server that answers from a table, fails for other hosts, and records questions."""

    def __init__(self, **ips: Sequence[str]) -> None:
        self.ips = ips
        self.asked: list[str] = []
        self.seconds = 0.0

    async def look_up(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        await trio.sleep(self.seconds)
        if host not in self.ips:
            raise OSError(-2, "Name or service not known")
        return self.ips[host]


class Heard:
    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, event: str, **values: object) -> None:
        self.events.append(event)


@pytest.fixture
def names() -> FakeNames:
    return FakeNames(a=["10.0.0.1", "10.0.0.2", "10.0.0.1"])


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def resolver(names: FakeNames, heard: Heard) -> Resolver:
    return Resolver(names.look_up, trio.current_time, heard)


async def test_literals_need_no_look_up(resolver: Resolver, names: FakeNames) -> None:
    assert await resolver.resolve("10.0.0.9") == ("10.0.0.9",)
    assert await resolver.resolve("fd00::1") == ("fd00::1",)
    assert names.asked == []


async def test_an_answer_is_cached_for_seconds(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    assert await resolver.resolve("a") == await resolver.resolve("a") == ("10.0.0.1", "10.0.0.2")
    assert len(names.asked) == 1
    await trio.sleep(FRESH_FOR)
    await resolver.resolve("a")
    assert len(names.asked) == 2


async def test_concurrent_callers_share_one_look_up(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    names.seconds = 1.0
    async with trio.open_nursery() as nursery:
        for host in ["a", "nowhere"] * 50:
            nursery.start_soon(resolver.resolve, host)
    assert sorted(names.asked) == ["a", "nowhere"]
    assert trio.current_time() == 1.0


async def test_the_next_caller_repeats_a_cancelled_look_up(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    names.seconds = 1.0
    with trio.move_on_after(0.5):
        await resolver.resolve("a")
    assert await resolver.resolve("a") == ("10.0.0.1", "10.0.0.2")


async def test_a_failure_is_cached_for_a_second(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    assert await resolver.resolve("nowhere") == ()
    assert await resolver.resolve("nowhere") == ()
    assert len(names.asked) == 1
    names.ips["nowhere"] = ["10.0.0.3"]
    await trio.sleep(FAILED_FOR)
    assert await resolver.resolve("nowhere") == ("10.0.0.3",)


async def test_a_silent_name_server_is_a_failure(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    names.seconds = 1000.0
    assert await resolver.resolve("a") == ()
    assert trio.current_time() == LOOK_UP_TIMEOUT
    assert resolver.is_failing("a")


async def test_the_last_answer_replaces_failures_for_a_while(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    await resolver.resolve("a")
    del names.ips["a"]
    await trio.sleep(KEPT_FOR - 1.0)
    assert await resolver.resolve("a") == ("10.0.0.1", "10.0.0.2")
    await trio.sleep(FAILED_FOR)
    assert await resolver.resolve("a") == ()


async def test_only_changes_are_logged(
    resolver: Resolver, names: FakeNames, heard: Heard, autojump_clock: trio.testing.MockClock
) -> None:
    ips = names.ips.pop("a")
    for _ in range(3):
        await resolver.resolve("a")
        await trio.sleep(FRESH_FOR)
    assert heard.events == ["name_unresolved"]
    names.ips["a"] = ips
    await resolver.resolve("a")
    assert heard.events == ["name_unresolved", "name_resolved"]
    assert not resolver.is_failing("a")


async def test_an_impossible_name_is_a_failure() -> None:
    async def look_up(host: str) -> Sequence[str]:
        return [host.encode("idna").decode()]

    assert await Resolver(look_up, trio.current_time, Heard()).resolve("a" * 70) == ()


async def test_names_that_never_resolved_are_bounded_and_evict_no_others(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    await resolver.resolve("a")
    for number in range(MOST_NAMES + 1):
        await resolver.resolve(f"host-{number}")
    assert resolver.cached("host-0") is None
    assert resolver.cached("host-1") == ()
    assert resolver.cached("a") == ("10.0.0.1", "10.0.0.2")


async def test_names_that_resolved_are_bounded(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    for number in range(MOST_NAMES + 1):
        names.ips[f"host-{number}"] = ["10.0.0.1"]
        await resolver.resolve(f"host-{number}")
    assert resolver.cached("host-0") is None
    assert resolver.cached("host-1") == ("10.0.0.1",)


async def test_a_flood_of_new_names_leaves_room_for_known_ones(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    await resolver.resolve("a")
    await trio.sleep(FRESH_FOR)
    names.asked.clear()
    names.seconds = 1.0
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(resolver.resolve, f"host-{number}")
        await trio.testing.wait_all_tasks_blocked()
        assert len(names.asked) == MOST_NEW_LOOK_UPS
        began = trio.current_time()
        await resolver.resolve("a")
        assert trio.current_time() == began + names.seconds


# -- names whose addresses cannot be reached --


async def test_an_unreachable_name_is_looked_up_again_at_once(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    before = await resolver.resolve("a")
    await trio.sleep(RENEWED_AFTER)
    names.ips["a"] = ["10.0.0.9"]
    assert await resolver.renew("a", before) == ("10.0.0.9",)
    assert await resolver.resolve("a") == ("10.0.0.9",)
    assert names.asked == ["a", "a"]


async def test_a_storm_of_callers_brings_one_look_up(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    before = await resolver.resolve("a")
    await trio.sleep(RENEWED_AFTER)
    names.seconds = 1.0
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(resolver.renew, "a", before)
    assert names.asked == ["a", "a"]
    assert await resolver.renew("a", before) == before
    assert names.asked == ["a", "a"], "the name was looked up a moment ago"
    await trio.sleep(RENEWED_AFTER)
    await resolver.renew("a", before)
    assert names.asked == ["a", "a", "a"]


async def test_who_knows_an_older_answer_gets_the_newer_one(
    resolver: Resolver, names: FakeNames, autojump_clock: trio.testing.MockClock
) -> None:
    before = await resolver.resolve("a")
    await trio.sleep(FRESH_FOR)
    names.ips["a"] = ["10.0.0.9"]
    await resolver.resolve("a")
    await trio.sleep(RENEWED_AFTER)
    assert await resolver.renew("a", before) == ("10.0.0.9",)
    assert names.asked == ["a", "a"]


async def test_an_unreachable_literal_is_not_looked_up(
    resolver: Resolver, names: FakeNames
) -> None:
    assert await resolver.renew("10.0.0.1", ["10.0.0.1"]) == ("10.0.0.1",)
    assert names.asked == []
