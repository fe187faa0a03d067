"""Prints the cost of limits: `python -m tests.unit.policy.cost`."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

from tests.unit.policy.world import Frame, Producer, World, messages, size

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 10_000


def memory() -> None:
    names = [f"persistent://public/default/topic-{n}" for n in range(MANY)]
    specs = [messages(100, key=("rule", name)) for name in names]
    accounts = [Producer(World().opens().account, ()).account for _ in names]
    world = World()
    tracemalloc.start()
    for account, limit in zip(accounts, specs, strict=True):
        world.limiter.admit(account, [limit], world.now)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{MANY} limits, an account under each: {used / MANY:.0f} bytes for both")


def timed(times: int, do: Callable[[], object]) -> float:
    """Return the microseconds of one call, the best of five series."""
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(times):
            do()
        best = min(best, time.perf_counter() - begin)
    return best / times * 1e6


def asking() -> None:
    for count in (1, 2, 4):
        world = World()
        kinds = [messages, size]
        limits = [kinds[n % 2](1e9, key=n) for n in range(count)]
        account = world.opens(*limits).account

        def ask(world: World = world, producer: Producer = world.producers[0]) -> None:
            world.now += 0.1
            producer.account.messages += 1000
            producer.account.bytes += 1000
            producer.account.hold()
            world.limiter.wants(producer.account, world.now)

        assert account.held
        print(f"a lease that is asked for, under {count} limits: {timed(10_000, ask):.1f} µs")


def rounds() -> None:
    for waiting, idle in ((1, 0), (1, MANY), (50, 0), (50, MANY), (1000, 0)):
        world = World()
        for topic in range(idle):
            world.sends(world.opens(messages(100, key=topic)))
        limit = messages(10_000, key="busy")
        world.floods(Frame(1, 100), *[world.opens(limit) for _ in range(waiting)])

        def one_round(world: World = world) -> None:
            world.now += 0.01
            for account, count, length in world.limiter.hold_round(world.now):
                account.grant(count, length)
                account.messages = account.messages_ceiling

        took = timed(50, one_round)
        print(f"a round, {waiting} wait for one limit, {idle} limits idle: {took:.0f} µs")


if __name__ == "__main__":
    memory()
    asking()
    rounds()
