"""The side connections of one pair: to brokers that a lookup was redirected to.

They are opened in the client's name, so they are never shared between pairs. They are kept for a
little while, because lookups come in bursts, and bounded in number.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import trio

from gateway.front.conversation import Reach
from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import AfterJob, Denial, Dialled, Job, Refusal

AT_ONCE = 8
"""Lookups of one pair that are chased at a time. A client that starts has dozens of lookups; each
takes some milliseconds."""

MOST = 2 * AT_ONCE
"""Side connections of one pair, used and unused: a chase has one at a time, and often asks two
brokers, first who decides and then who was chosen."""

KEPT = 20.0
"""Seconds that an unused side connection is kept. A broker pings after 30 s and nobody would
answer."""

_OVER = Denial(Refusal.CLOSED, "the client is gone")


class QueuedJob(NamedTuple):
    """A job that nobody has begun. `deadline`: of trio's clock."""

    job: Job
    then: AfterJob
    deadline: float


class SideConnections:
    """A pool for one pair, and what waits to use it. Made at the first redirect.

    `waiting`: in order. `busy`: how many are at it; each has one connection at the most.
    """

    def __init__(self, dial: Reach) -> None:
        self._dial = dial
        self._idle: list[tuple[Address, float, Leg]] = []  # in the order of their return
        self._taken: dict[Leg, Address] = {}
        self._dialled = 0  # right now
        self._closed = False
        self.waiting: deque[QueuedJob] = deque()
        self.busy = 0
        self.sweeping = False

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """An opened connection to this broker, or a new one."""
        assert target is not None
        if self._closed:
            return _OVER
        pooled = self._pooled(target)
        if pooled is not None:
            self._taken[pooled] = target
            return pooled, Dialled(target, fresh=False)
        dialled = await self._dial_anew(target)
        if not isinstance(dialled, Denial):
            self._taken[dialled[0]] = target
        return dialled

    async def _dial_anew(self, target: Address) -> tuple[Leg, Dialled] | Denial:
        self._dialled += 1
        self._close_beyond(MOST)
        try:
            return await self._dial(target)
        finally:
            self._dialled -= 1

    def __len__(self) -> int:
        """Return how many connections there are, or will be."""
        return len(self._idle) + len(self._taken) + self._dialled

    def _close_beyond(self, most: int) -> None:
        """Close unused ones, the oldest first, until there are so many."""
        while self._idle and len(self) > most:
            self._idle.pop(0)[2].close()

    def _pooled(self, target: Address) -> Leg | None:
        self.sweep()
        for entry in reversed(self._idle):
            if entry[0] == target:
                self._idle.remove(entry)
                if entry[2].is_alive():
                    return entry[2]
                entry[2].close()
        return None

    @property
    def expires_in(self) -> float | None:
        """Seconds until the first unused connection is to be closed; None: there is none."""
        return self._idle[0][1] + KEPT - trio.current_time() if self._idle else None

    def sweep(self) -> None:
        """Close what was not used for long."""
        oldest = trio.current_time() - KEPT
        while self._idle and self._idle[0][1] <= oldest:
            self._idle.pop(0)[2].close()

    def give_back(self, legs: list[Leg], *, usable: bool) -> None:
        """A chase needs these no more; they can serve another one if nothing went wrong."""
        for leg in legs:
            address = self._taken.pop(leg)
            if usable and not self._closed and not leg.received:
                self._idle.append((address, trio.current_time(), leg))
            else:
                leg.close()
        self._close_beyond(MOST)

    def leave(self, leg: Leg) -> None:
        """A chase goes on to another broker, after an answer of this one."""
        self.give_back([leg], usable=True)

    def close(self) -> None:
        """The pair is over."""
        self._closed = True
        self.waiting.clear()
        for _, _, leg in self._idle:
            leg.close()
        self._idle.clear()
