"""Rate limits of requests: lookups, connections, and the opening of producers and consumers.

A request takes one unit of each of its limits in advance (`gcra`), and then waits until all these
units are earned. A request that would have to wait too long takes no unit, and is refused. So no
request overtakes another at the same limit, and no timer has to serve a queue. If a client gives up
on a request, no other request loses its turn.

If processes share the limits (by a `Supply`), the time of the next unit is not known, because the
other processes use a part of the rate. A request for which there is no unit yet then gets an
`Again`: the caller has to ask again at the time at which the request would have its turn if this
process had the whole rate. Waiting requests are served in the order of their first calls.

Bound: under one limit, at most rate × time requests, plus the burst, plus one, end their wait in
any interval. If requests are also under a stricter limit, they take their unit of this limit before
they have waited for the stricter one. So as many requests more may end their wait in an interval as
wait for the stricter limit.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.dimensions import Dimension
from gateway.policy.gcra import WHOLE_UNIT, Meter
from gateway.policy.keys import FORGOTTEN_AT_ONCE, MOST_RESTING, Identity, identity_of, on_loss_of
from gateway.policy.supply import used_share
from gateway.policy.tallies import Tallies
from gateway.wire.services import Again

if TYPE_CHECKING:
    from collections.abc import Collection

    from gateway.policy.matching import AppliedLimit
    from gateway.policy.supply import Metered, Supply
    from gateway.telemetry.figures import RuleFigures

LONGEST_ANSWER = 0.1
"""Seconds that a request may wait for other processes where a rule rejects what has to wait."""

LEAST_RETRY = 0.01
"""Seconds until a request asks once more, at least: a response takes a few milliseconds."""

_APART = 1e-7
"""Seconds between the times by which requests are told apart: a monotonic clock that runs for years
resolves some 1e-8."""


class _WaitQueue:
    """The requests that wait at a shared limit, by the time of their first try. One that never asks
    again is forgotten after `longest` seconds, when it would have been refused."""

    __slots__ = ("_longest", "_since")

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._since: list[float] = []

    def __len__(self) -> int:
        return len(self._since)

    def ahead(self, since: float, now: float) -> int:
        """Return how many of the waiting requests came before the time `since`."""
        del self._since[: bisect_left(self._since, now - self._longest)]
        return bisect_left(self._since, since)

    def add(self, since: float) -> None:
        insort(self._since, since)

    def remove(self, since: float) -> None:
        at = bisect_left(self._since, since)
        if at < len(self._since) and self._since[at] == since:
            del self._since[at]


class _RequestLimit:
    """`queue`: None where the limit is not shared."""

    __slots__ = ("meter", "queue")

    def __init__(self, meter: Metered, queue: _WaitQueue | None = None) -> None:
        self.meter = meter
        self.queue = queue

    def wait(self, since: float, now: float) -> float:
        """Return the seconds until a unit is earned; if the limit is shared, the seconds until the
        request should ask again. `since`: when the request first asked."""
        meter, queue = self.meter, self.queue
        ahead = 0 if queue is None else queue.ahead(since, now)
        if meter.available(now) >= ahead + WHOLE_UNIT:
            return 0.0
        ready_at = meter.ready_at(ahead + 1, now)
        if queue is None:
            return ready_at - now
        # As if all of the rate came here, and the burst as long as it is not known to be used.
        saved = 0.0 if meter.is_spent(now) else meter.burst
        soonest = ready_at - now if math.isfinite(ready_at) else 0.0
        return max(LEAST_RETRY, soonest, (ahead - saved) / meter.rate)

    def full_at(self, now: float) -> float:
        """Return the time from which this limit equals a new one, and so may be forgotten."""
        return now + LEAST_RETRY if self.queue else self.meter.full_at(now)

    def waiting(self, now: float) -> int:
        """Return the number of requests that wait."""
        if self.queue is not None:
            return len(self.queue)
        return max(0, math.ceil(-self.meter.available(now)))


class _Wait(NamedTuple):
    """A request's wait at one limit: `seconds` still to come, `waited` already."""

    limit: AppliedLimit
    state: _RequestLimit
    seconds: float
    waited: float

    @property
    def is_too_long(self) -> bool:
        """Return whether the request has to be refused. A rule with `action: reject` lets no
        producer wait; only if the limit is shared, a producer may wait up to `LONGEST_ANSWER`
        seconds for the store's response."""
        longest = _longest_wait(self.limit)
        opens = self.limit.dimension is Dimension.PRODUCER_CREATIONS
        if opens and self.limit.rule.action == "reject":
            longest = 0.0 if self.state.queue is None else LONGEST_ANSWER
        return self.waited + self.seconds > longest

    @property
    def is_known(self) -> bool:
        """Return whether a unit may be taken now: it is available, or the time at which it will be
        earned is known."""
        return not self.seconds or self.state.queue is None


class RequestLimiter:
    """The rate limits of all requests of a process. With a `supply`, other processes share them.

    A limit that has had no requests for a while is forgotten, because it is the same as a new one
    by then. `most`: the most bytes of memory for limits that are kept until then.
    """

    def __init__(self, supply: Supply | None = None, most: int = MOST_RESTING) -> None:
        self._supply = supply
        self._most = most
        self._size = 0  # bytes
        self._limits: dict[Identity, _RequestLimit] = {}
        self._full: list[tuple[float, int, Identity]] = []  # when each may be forgotten
        self._tickets = count()
        self._tallies = Tallies()
        self._newest = float("-inf")

    def __len__(self) -> int:
        return len(self._limits)

    def wait(
        self, limits: Collection[AppliedLimit], now: float, again: Again | None = None
    ) -> float | Again | AppliedLimit:
        """Take one unit of each limit, and return the seconds until all of them are earned.

        If the wait for a limit would be too long, take no unit, and return that limit: the request
        is refused. If a shared limit has no unit yet, take no unit and return an `Again`; pass it
        as `again` in the next call for the same request.
        """
        self._forget(now)
        since = self._unique(now) if again is None else again.since
        waits = [self._wait(limit, since, now) for limit in limits]
        queues = [wait.state.queue for wait in waits if wait.state.queue is not None]
        for queue in queues if again is not None else ():
            queue.remove(since)
        refusing = [wait.limit for wait in waits if wait.is_too_long]
        for limit in refusing:
            self._tallies.refused(identity_of(limit))
        enforced = next((limit for limit in refusing if limit.mode == "enforce"), None)
        if enforced is not None:
            return enforced
        if all(wait.is_known for wait in waits):
            return self._take(waits, now)
        for queue in queues:
            queue.add(since)
        for wait in waits:
            if wait.seconds and not wait.waited:
                self._tallies.waited(identity_of(wait.limit), 0.0)
        return Again(max(wait.seconds for wait in waits), since)

    def _unique(self, now: float) -> float:
        """Return a time of its own for each of several requests at the same time."""
        self._newest = max(now, self._newest + _APART)
        return self._newest

    def _take(self, waits: list[_Wait], now: float) -> float:
        taken = [wait for wait in waits if not wait.is_too_long]  # a shadow refuses nothing
        for wait in taken:
            wait.state.meter.take(1, now)
            if wait.waited and wait.state.queue is not None:
                self._tallies.has_waited(identity_of(wait.limit), wait.waited)
            if wait.seconds:
                self._tallies.waited(identity_of(wait.limit), wait.seconds)
        enforced = (wait.seconds for wait in taken if wait.limit.mode == "enforce")
        return max(enforced, default=0.0)

    def figures(self, now: float) -> list[RuleFigures]:
        """Return the figures of each rule: the number of its limits, how many requests wait for
        them, and its totals."""
        return self._tallies.figures(
            (identity, limit.waiting(now), used_share(limit.meter, now))
            for identity, limit in self._limits.items()
        )

    def _wait(self, limit: AppliedLimit, since: float, now: float) -> _Wait:
        state = self._state(limit, now)
        return _Wait(limit, state, state.wait(since, now), max(0.0, now - since))

    def _state(self, limit: AppliedLimit, now: float) -> _RequestLimit:
        identity = identity_of(limit)
        state = self._limits.get(identity)
        if state is None:
            state = self._limits[identity] = self._new(limit)
            self._size += identity[0].size
            heappush(self._full, (now, next(self._tickets), identity))
        if (state.meter.rate, state.meter.burst) != (limit.rate, limit.burst):
            state.meter.change(limit.rate, limit.burst, now)
        return state

    def _new(self, limit: AppliedLimit) -> _RequestLimit:
        on_loss = on_loss_of(limit)
        if self._supply is None or on_loss is None:
            return _RequestLimit(Meter(limit.rate, limit.burst))
        key, _ = identity_of(limit)
        meter = self._supply.meter(key.text, limit.rate, limit.burst, on_loss)
        return _RequestLimit(meter, _WaitQueue(_longest_wait(limit)))

    def _forget(self, now: float) -> None:
        """Drop some limits that are as good as new ones, or that are too many."""
        for _ in range(FORGOTTEN_AT_ONCE):
            if not self._full or (self._full[0][0] > now and self._size <= self._most):
                return
            when, ticket, identity = self._full[0]
            full_at = self._limits[identity].full_at(now)
            if full_at > max(now, when):
                heapreplace(self._full, (full_at, ticket, identity))
            else:
                heappop(self._full)
                del self._limits[identity]
                self._size -= identity[0].size


def _longest_wait(limit: AppliedLimit) -> float:
    wait = limit.dimension.longest_wait
    assert wait is not None
    return wait
