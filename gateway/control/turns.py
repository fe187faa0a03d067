"""Lets addresses, and names at an address, take turns at having slow password hashes computed.

Anybody can make the gateway compute hashes, so nobody waits for more than his share of them:

- Of each address, one login waits for a slot; its other logins wait behind that one. So the slots
  go round the addresses, however many logins one of them makes.
- Of each name at an address, one login has its turn at a time, because clients behind one balancer
  have one address.
- A name that has failed often at an address waits before its next hash there. The other names of
  the address wait then too, but much shorter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from gateway.control.failures import Failures
from gateway.listening.queues import Queues
from gateway.wire.contract import Denial
from gateway.wire.holder import holder

T = TypeVar("T")

AT_ONCE = 2
"""Hashes of all listeners computed at a time; each takes a core for 50 to 300 ms."""

LONGEST_OF_ADDRESS = 1.0
"""Seconds that an address which has failed often waits between two hashes, whichever names it
tries. The clients behind a balancer wait so long for one among them."""


class HashTurns:
    """The turns of all logins of a process. `clock`: monotonic seconds. `failures`: failed
    authentications of all methods, by address."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.failures = Failures(clock)
        self._of_names = Failures(clock)  # of passwords, by name at an address
        self._slots = trio.Semaphore(AT_ONCE)
        self._queues = Queues()

    async def take(
        self, host: str, user: str, verify: Callable[[], Awaitable[T | Denial]]
    ) -> T | Denial:
        """Wait for the turn of a user name at an address, and return the result of `verify`, which
        computes a hash."""
        address = holder(host)
        name = f"{address} {hash(user)}"  # of one size, however long the user name is
        async with self._queues.of(name):
            await trio.sleep(self._of_names.wait(name))
            async with self._queues.of(address):
                await trio.sleep(min(self.failures.wait(host), LONGEST_OF_ADDRESS))
                await self._slots.acquire()
            try:
                outcome = await verify()
            finally:
                self._slots.release()
            if isinstance(outcome, Denial):
                self._of_names.failed(name)
            return outcome
