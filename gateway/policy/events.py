"""How often something may be done: lookups, connections, producers and consumers that are opened.

Whoever does it takes a unit of each limit in advance, and learns how long to wait until all of them
are earned. Who would have to wait for too long takes nothing, and is refused. So nobody overtakes
others at the same limit, no round is held, and what is given up costs nobody else a turn.

In any interval at most rate x time, the burst and one more go on under a limit. Who waits for a
stricter limit beside it took its unit here before it goes: that adds what was let wait so.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.gcra import Meter
from gateway.policy.keys import Identity, identity_of
from gateway.policy.rules import Dimension
from gateway.policy.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gateway.figures import RuleFigures
    from gateway.policy.matching import AppliedLimit

PATIENCE: Mapping[Dimension, float] = {
    Dimension.CONNECTS: 2.5,
    Dimension.LOOKUPS: 2.5,
    Dimension.PRODUCER_CREATIONS: 5.0,
    Dimension.CONSUMER_CREATIONS: 5.0,
}
"""Seconds that each may wait. To open its first producer a client asks for partitions, looks up and
opens, in a row: 10 s together, a third of what it has patience for. These go over several
connections, of several gateways too, so no step can know what the others took: each has its part.
Most is for what is opened, since a client opens many at the same time. The two connections that it
makes beside, once for each broker, may add half of that again."""


class _Turn(NamedTuple):
    """When a unit of a limit is earned: in so many seconds."""

    limit: AppliedLimit
    meter: Meter
    seconds: float

    @property
    def is_late(self) -> bool:
        """It would be waited for too long. A rule that rejects lets no producer wait."""
        opens = self.limit.dimension is Dimension.PRODUCER_CREATIONS
        rejects = opens and self.limit.rule.action == "reject"
        return self.seconds > (0.0 if rejects else PATIENCE[self.limit.dimension])


class Events:
    """Given are limits of events only.

    A limit that nobody has asked of for a while is forgotten: it is as good as a new one.
    """

    def __init__(self) -> None:
        self._meters: dict[Identity, Meter] = {}
        self._full: list[tuple[float, int, Identity]] = []  # when each may be forgotten
        self._tickets = count()
        self._tallies = Tallies()

    def __len__(self) -> int:
        return len(self._meters)

    def wait(self, limits: Collection[AppliedLimit], now: float) -> float | AppliedLimit:
        """Take a unit of each, and answer in how many seconds it may be used; or the limit that
        refuses, and nothing is taken."""
        self._forget(now)
        turns = [self._turn(limit, now) for limit in limits]
        late = [turn.limit for turn in turns if turn.is_late]
        for limit in late:
            self._tallies.refused(identity_of(limit))
        refusing = next((limit for limit in late if limit.mode == "enforce"), None)
        return self._take(turns, now) if refusing is None else refusing

    def _take(self, turns: list[_Turn], now: float) -> float:
        taken = [turn for turn in turns if not turn.is_late]  # a shadow that is late lets pass
        for turn in taken:
            turn.meter.take(1, now)
        waits = [turn for turn in taken if turn.seconds]
        for turn in waits:
            self._tallies.waited(identity_of(turn.limit), turn.seconds)
        enforced = (turn.seconds for turn in waits if turn.limit.mode == "enforce")
        return max(enforced, default=0.0)

    def figures(self, now: float) -> list[RuleFigures]:
        """How many limits there are, who waits, and what they did."""
        debts = ((it, -meter.available(now)) for it, meter in self._meters.items())
        return self._tallies.figures((it, max(0, math.ceil(debt))) for it, debt in debts)

    def _turn(self, limit: AppliedLimit, now: float) -> _Turn:
        meter = self._meter(limit, now)
        return _Turn(limit, meter, meter.ready_at(1, now) - now if meter.is_spent(now) else 0.0)

    def _meter(self, limit: AppliedLimit, now: float) -> Meter:
        identity = identity_of(limit)
        meter = self._meters.get(identity)
        if meter is None:
            meter = self._meters[identity] = Meter(limit.rate, limit.burst)
            heappush(self._full, (now, next(self._tickets), identity))
        if (meter.rate, meter.burst) != (limit.rate, limit.burst):
            meter.change(limit.rate, limit.burst, now)
        return meter

    def _forget(self, now: float) -> None:
        while self._full and self._full[0][0] <= now:
            _, ticket, identity = self._full[0]
            full_at = self._meters[identity].full_at(now)
            if full_at > now:
                heapreplace(self._full, (full_at, ticket, identity))
            else:
                heappop(self._full)
                del self._meters[identity]
