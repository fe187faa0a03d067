"""The side connections of one pair, to brokers to which a lookup was redirected.

A *chase* follows the redirects of one lookup. Side connections are opened in the client's name, so
pairs never share them. They are kept for a short time, because lookups come in bursts, and their
number is bounded.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import trio

from gateway.front.conversation import Reach
from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import AfterJob, Denial, Dialled, Job, Refusal

JOBS_AT_ONCE = 8
"""Jobs of one pair that run at a time. A client that starts makes dozens of lookups; each takes
some milliseconds."""

MAX_CONNECTIONS = 2 * JOBS_AT_ONCE
"""Side connections of one pair, used and unused. A chase has one at a time, and often asks two
brokers: the one that decides, then the one that it chose."""

KEEP_SECONDS = 20.0
"""Seconds for which an unused side connection is kept. A broker pings after 30 s, and would get no
answer."""

_OVER = Denial(Refusal.CLOSED, "the client is gone")


class QueuedJob(NamedTuple):
    """A job that has not started. `then`: gets its result. `deadline`: by trio's clock."""

    job: Job
    then: AfterJob
    deadline: float


class SideConnections:
    """A pair's pool of side connections, and the jobs that wait for one; made at the pair's first
    redirected lookup.

    `waiting`: the jobs, in order. `busy`: number of tasks that run jobs, each on at most one
    connection. `sweeping`: a timer is set that closes unused connections.
    """

    def __init__(self, dial: Reach) -> None:
        self._dial = dial
        self._idle: list[tuple[Address, float, Leg]] = []  # in the order of their return
        self._taken: dict[Leg, Address] = {}
        self._dialling = 0
        self._closed = False
        self.waiting: deque[QueuedJob] = deque()
        self.busy = 0
        self.sweeping = False

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """Return an unused connection to the broker `target`, or a new connection; a denial if the
        broker cannot be reached."""
        assert target is not None
        if self._closed:
            return _OVER
        pooled = self._pooled(target)
        if pooled is not None:
            self._taken[pooled] = target
            return pooled, Dialled(target, fresh=False)
        self._dialling += 1
        self._close_surplus()
        try:
            dialled = await self._dial(target)
        finally:
            self._dialling -= 1
        if not isinstance(dialled, Denial):
            self._taken[dialled[0]] = target
        return dialled

    def __len__(self) -> int:
        """Return the number of connections, with those that are being dialled."""
        return len(self._idle) + len(self._taken) + self._dialling

    def _close_surplus(self) -> None:
        """Close unused connections beyond the bound, the oldest first."""
        while self._idle and len(self) > MAX_CONNECTIONS:
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
        """Return the seconds until the first unused connection must be closed; None if no
        connection is unused."""
        return self._idle[0][1] + KEEP_SECONDS - trio.current_time() if self._idle else None

    def sweep(self) -> None:
        """Close the connections that were not used for `KEEP_SECONDS`."""
        oldest = trio.current_time() - KEEP_SECONDS
        while self._idle and self._idle[0][1] <= oldest:
            self._idle.pop(0)[2].close()

    def give_back(self, legs: list[Leg], *, usable: bool) -> None:
        """Put the connections of a finished chase, which followed a lookup's redirects, back into
        the pool, and close those that no other chase can use.

        `usable`: the chase did not fail on these connections.
        """
        for leg in legs:
            address = self._taken.pop(leg)
            if usable and not self._closed and not leg.received:
                self._idle.append((address, trio.current_time(), leg))
            else:
                leg.close()
        self._close_surplus()

    def retire(self, leg: Leg) -> None:
        """Put one connection back into the pool: its broker has redirected the lookup, and another
        broker is dialled next."""
        self.give_back([leg], usable=True)

    def close(self) -> None:
        """Close unused connections and drop waiting jobs, because the pair has ended."""
        self._closed = True
        self.waiting.clear()
        for _, _, leg in self._idle:
            leg.close()
        self._idle.clear()
