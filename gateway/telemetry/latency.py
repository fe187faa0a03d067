"""How long clients wait: histograms by tenant, and the slowest sends.

A listener keeps histograms for at most `TENANTS` tenants, because clients choose the tenants of
their topics. All other tenants share one histogram.
"""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_left
from collections import deque
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple

from gateway.telemetry.figures import OTHER, TENANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.wire.account import Account
    from gateway.wire.subject import Subject

BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
"""Upper bounds of buckets, in seconds. The gateway needs 20 µs or more for a frame, a broker's disk
milliseconds; clients give up after 30 s, and operations after 60."""

SLOWEST = 20
"""Sends of each minute that are remembered as its slowest: as many as people read."""

MINUTES = 5
"""Minutes whose slowest sends are remembered."""


class Histogram:
    """Counts durations by bucket. `counts`: the number of durations in each bucket; the last bucket
    has those above all bounds. `seconds`: the sum of all durations."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, number: int = 1) -> None:
        """Count a duration, `number` times; see `wire.stopwatch.Durations`."""
        self.counts[bisect_left(BOUNDS, seconds)] += number
        self.seconds += seconds * number


class SlowSend(NamedTuple):
    """A send that was among the slowest of its minute. `seconds`: the time until its receipt. `at`:
    the wall-clock time of the receipt. `subject`: the client and the topic."""

    seconds: float
    at: float
    subject: Subject

    @property
    def topic(self) -> str:
        """Return the name of the topic as metrics have it; empty if there is no topic."""
        return "" if self.subject.topic is None else self.subject.topic.name


class SlowSends:
    """The slowest sends of the last minutes; a `wire.stopwatch.Slowest`. `wall_clock`: returns
    seconds since 1970."""

    def __init__(self, wall_clock: Callable[[], float] = time.time) -> None:
        self.floor = 0.0
        self.until = -math.inf
        self._wall_clock = wall_clock
        self._ties = count()  # orders sends of the same duration
        self._now: list[tuple[float, int, SlowSend]] = []  # of this minute, a heap
        self._before: deque[list[SlowSend]] = deque(maxlen=MINUTES - 1)

    def note(self, account: Account, seconds: float, now: float) -> None:
        """Remember a send if it is among the slowest of this minute. `seconds`: its duration.
        `now`: monotonic seconds."""
        if now >= self.until:
            self._before.append([slow for *_, slow in self._now])
            self._now = []
            self.floor, self.until = 0.0, now + 60.0
        send = SlowSend(seconds, self._wall_clock(), account.subject)
        heapq.heappush(self._now, (seconds, next(self._ties), send))
        if len(self._now) > SLOWEST:
            heapq.heappop(self._now)
            self.floor = self._now[0][0]

    def slowest(self, topic: str | None = None) -> list[SlowSend]:
        """Return the slowest sends of the last `MINUTES` minutes, slowest first. `topic`: only
        sends to this topic; None: to all topics."""
        oldest = self._wall_clock() - MINUTES * 60
        known = chain((send for *_, send in self._now), *self._before)
        sends = [send for send in known if send.at > oldest and topic in (None, send.topic)]
        return sorted(sends, key=lambda send: -send.seconds)


class TenantLatencies:
    """The histograms of one tenant on one listener; a `wire.stopwatch.Latencies`. `slow`: where the
    slowest sends of all listeners are remembered."""

    __slots__ = ("first_message", "lookup", "own", "send", "slow")

    def __init__(self, slow: SlowSends) -> None:
        self.send, self.own = Histogram(), Histogram()
        self.lookup, self.first_message = Histogram(), Histogram()
        self.slow = slow


class ListenerLatencies:
    """The histograms of one listener, by tenant. `connect`: the durations from the acceptance of a
    connection to the open pair, which have no tenant yet. `tenants`: how many tenants may have
    histograms of their own."""

    def __init__(self, slow: SlowSends, tenants: int = TENANTS) -> None:
        self.connect = Histogram()
        self.tenants: dict[str, TenantLatencies] = {}
        self._slow = slow
        self._most = tenants

    def of(self, tenant: str, *, proven: bool) -> TenantLatencies:
        """Return the histograms of a tenant, and create them if it has none. The histograms of
        `__other__` are returned in two cases: the bound on tenants is reached, or the tenant is new
        and not `proven` to exist, so that clients cannot use up the bound with made-up tenants."""
        if tenant not in self.tenants and (not proven or len(self.tenants) >= self._most):
            tenant = OTHER
        latencies = self.tenants.get(tenant)
        if latencies is None:
            latencies = self.tenants[tenant] = TenantLatencies(self._slow)
        return latencies
