"""Turns at slow hashes. A hash takes `HASH` seconds of trio's clock, which jumps."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing

from gateway.control.failures import FREE, LONGEST_DELAY
from gateway.control.turns import AT_ONCE, LONGEST_OF_ADDRESS, HashTurns
from gateway.wire.contract import Denial, Refusal

STRANGER, BOBS = "192.0.2.66", "192.0.2.1"
HASH = 0.25
WRONG = Denial(Refusal.UNAUTHENTICATED, "wrong")
PATIENCE = 10.0
"""Seconds that an opening may take."""


class Flood:
    """Logins, and which of them got a hash: `computed`, by address and name."""

    def __init__(self) -> None:
        self.turns = HashTurns(trio.current_time)
        self.computed: list[tuple[str, str]] = []
        self.now = self.most = 0

    async def log_in(self, host: str, user: str, *, right: bool = False) -> float:
        """Return the seconds until the response; `PATIENCE` without one."""
        began = trio.current_time()
        with trio.move_on_after(PATIENCE):
            outcome = await self.turns.take(host, user, partial(self._verify, host, user, right))
            if isinstance(outcome, Denial):
                self.turns.failures.failed(host)
        return trio.current_time() - began

    async def _verify(self, host: str, user: str, right: bool) -> str | Denial:
        self.computed.append((host, user))
        self.now += 1
        self.most = max(self.most, self.now)
        with trio.CancelScope(shield=True):  # as nothing ends a thread
            await trio.sleep(HASH)
        self.now -= 1
        return user if right else WRONG

    async def guess(self, host: str, user: str) -> None:
        """Guess one password after the other, for ever."""
        while True:
            await self.log_in(host, user)


async def rush(flood: Flood, nursery: trio.Nursery, host: str, users: list[str]) -> None:
    """Let strangers guess, until each that may has begun."""
    for user in users:
        nursery.start_soon(flood.guess, host, user)
    await trio.sleep(60)


NOBODY = ["nobody"] * 300
ANYBODY = [f"user-{number}" for number in range(300)]


@pytest.mark.parametrize("users", [NOBODY, ANYBODY], ids=["one name", "many names"])
async def test_three_hundred_guessers_at_one_address_delay_another_address_by_two_hashes(
    autojump_clock: trio.testing.MockClock, users: list[str]
) -> None:
    flood = Flood()
    async with trio.open_nursery() as nursery:
        await rush(flood, nursery, STRANGER, users)
        assert await flood.log_in(BOBS, "bob", right=True) <= 3 * HASH
        nursery.cancel_scope.cancel()


async def test_each_of_many_addresses_delays_a_login_by_one_hash(
    autojump_clock: trio.testing.MockClock,
) -> None:
    flood = Flood()
    async with trio.open_nursery() as nursery:
        for number in range(10):
            for user in ANYBODY[:20]:
                nursery.start_soon(flood.log_in, f"192.0.2.{number + 100}", user)
        await trio.lowlevel.checkpoint()
        flood.computed.clear()
        assert await flood.log_in(BOBS, "bob", right=True) <= (10 / AT_ONCE + 2) * HASH
        nursery.cancel_scope.cancel()


async def test_guessers_of_one_name_do_not_keep_another_name_of_their_address_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """As behind a balancer, where all clients have one address."""
    flood = Flood()
    async with trio.open_nursery() as nursery:
        await rush(flood, nursery, BOBS, NOBODY)
        assert await flood.log_in(BOBS, "bob", right=True) <= LONGEST_OF_ADDRESS + 3 * HASH
        nursery.cancel_scope.cancel()


async def test_a_name_that_failed_often_waits_before_its_hash(
    autojump_clock: trio.testing.MockClock,
) -> None:
    flood = Flood()
    async with trio.open_nursery() as nursery:
        await rush(flood, nursery, STRANGER, NOBODY)
        flood.computed.clear()
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert 0 < len(flood.computed) <= 60 / LONGEST_DELAY + 1


async def test_an_address_gets_a_bounded_number_of_hashes_whatever_names_it_tries(
    autojump_clock: trio.testing.MockClock,
) -> None:
    flood = Flood()
    async with trio.open_nursery() as nursery:
        await rush(flood, nursery, STRANGER, ANYBODY)
        flood.computed.clear()
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert 0 < len(flood.computed) <= 60 / LONGEST_OF_ADDRESS + AT_ONCE


async def test_a_few_failures_delay_nothing(autojump_clock: trio.testing.MockClock) -> None:
    flood = Flood()
    for _ in range(FREE):
        assert await flood.log_in(BOBS, "bob") == pytest.approx(HASH)


async def test_few_hashes_are_computed_at_a_time(autojump_clock: trio.testing.MockClock) -> None:
    flood = Flood()
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(flood.log_in, f"192.0.2.{number}", "alice")
    assert (len(flood.computed), flood.most) == (20, AT_ONCE)


async def test_who_gives_up_before_his_turn_costs_no_hash(
    autojump_clock: trio.testing.MockClock,
) -> None:
    flood = Flood()
    async with trio.open_nursery() as nursery:
        for user in ("alice", "bob", "carol"):
            nursery.start_soon(flood.log_in, STRANGER, user)
        await trio.lowlevel.checkpoint()
        with trio.CancelScope() as scope:
            scope.cancel()
            await flood.log_in(STRANGER, "late")
    assert (STRANGER, "late") not in flood.computed
    assert len(flood.computed) == 3


async def test_no_queue_is_kept_of_who_has_left(autojump_clock: trio.testing.MockClock) -> None:
    flood = Flood()
    await flood.log_in(BOBS, "bob", right=True)
    assert len(flood.turns._queues) == 0
