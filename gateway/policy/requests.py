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

from gateway.policy.gcra import ONE, Meter
from gateway.policy.keys import FORGOTTEN_AT_ONCE, MOST_RESTING, Identity, identity_of, on_loss_of
from gateway.policy.rules import Dimension
from gateway.policy.tallies import Tallies
from gateway.policy.waiters import LEAST, Waiters
from gateway.wire.services import Again

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gateway.policy.matching import AppliedLimit
    from gateway.policy.supply import Metered, Supply
    from gateway.telemetry.figures import RuleFigures

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


class _Pace:
    """One limit. `waiters`: where it is shared."""

    __slots__ = ("meter", "waiters")

    def __init__(self, meter: Metered, waiters: Waiters | None = None) -> None:
        self.meter = meter
        self.waiters = waiters

    def wait(self, since: float, now: float) -> float:
        """In how many seconds a unit is earned, as far as is known."""
        meter, ahead = self.meter, 0
        if self.waiters is not None:
            ahead = self.waiters.ahead(since, now)
        if meter.available(now) >= ahead + ONE:
            return 0.0
        ready_at = meter.ready_at(ahead + 1, now)
        return ready_at - now if self.waiters is None else self._guess(ahead, ready_at, now)

    def _guess(self, ahead: int, ready_at: float, now: float) -> float:
        """As if all of the rate came here, and the burst as long as it is not known to be gone."""
        saved = 0.0 if self.meter.is_spent(now) else self.meter.burst
        soonest = ready_at - now if math.isfinite(ready_at) else 0.0
        return max(LEAST, soonest, (ahead - saved) / self.meter.rate)

    def full_at(self, now: float) -> float:
        """From when on it is as good as a new one."""
        if self.waiters:
            return now + LEAST
        return self.meter.full_at(now)

    def waiting(self, now: float) -> int:
        """How many there are that wait."""
        if self.waiters is not None:
            return len(self.waiters)
        return max(0, math.ceil(-self.meter.available(now)))


class _Turn(NamedTuple):
    """When a unit of a limit is earned: in so many seconds, after so many that were waited."""

    limit: AppliedLimit
    pace: _Pace
    seconds: float
    waited: float

    @property
    def is_late(self) -> bool:
        """It would be waited for too long. A rule that rejects lets no producer wait, but for an
        answer."""
        opens = self.limit.dimension is Dimension.PRODUCER_CREATIONS
        rejects = opens and self.limit.rule.action == "reject"
        if rejects and self.pace.waiters is not None:
            return self.waited + self.seconds > ANSWER
        return self.waited + self.seconds > (0.0 if rejects else PATIENCE[self.limit.dimension])

    @property
    def is_known(self) -> bool:
        """A unit may be taken."""
        return not self.seconds or self.pace.waiters is None


ANSWER = 0.1
"""Seconds for other processes to answer whether there is room."""


_APART = 1e-7
"""Seconds: of a monotonic clock that runs for years some 1e-8 can be told."""


class Events:
    """Given are limits of events only. Where there is a `supply` they are shared by it.

    A limit that nobody has asked of for a while is forgotten: it is as good as a new one. `most`:
    bytes of those that are kept until then.
    """

    def __init__(self, supply: Supply | None = None, most: int = MOST_RESTING) -> None:
        self._supply = supply
        self._most = most
        self._size = 0  # bytes
        self._paces: dict[Identity, _Pace] = {}
        self._full: list[tuple[float, int, Identity]] = []  # when each may be forgotten
        self._tickets = count()
        self._tallies = Tallies()
        self._newest = float("-inf")

    def __len__(self) -> int:
        return len(self._paces)

    def wait(
        self, limits: Collection[AppliedLimit], now: float, again: Again | None = None
    ) -> float | Again | AppliedLimit:
        """Take a unit of each, and answer in how many seconds it may be used; or the limit that
        refuses, and nothing is taken. Nothing is, too, where that is still to be learned."""
        self._forget(now)
        since = self._unique(now) if again is None else again.since
        turns = [self._turn(limit, since, now) for limit in limits]
        if again is not None:
            self._leave(turns, since)
        late = [turn.limit for turn in turns if turn.is_late]
        for limit in late:
            self._tallies.refused(identity_of(limit))
        refusing = next((limit for limit in late if limit.mode == "enforce"), None)
        if refusing is not None:
            return refusing
        if not all(turn.is_known for turn in turns):
            return self._put_off(turns, since)
        return self._take(turns, now)

    def _unique(self, now: float) -> float:
        """Of several that come at once each is known by a time of its own."""
        self._newest = max(now, self._newest + _APART)
        return self._newest

    @staticmethod
    def _leave(turns: list[_Turn], since: float) -> None:
        """Who was put off before waits no more, unless it is put off again."""
        for turn in turns:
            if turn.pace.waiters is not None:
                turn.pace.waiters.take_out(since)

    def _put_off(self, turns: list[_Turn], since: float) -> Again:
        for turn in turns:
            if turn.pace.waiters is not None:
                turn.pace.waiters.put(since)
            if turn.seconds and not turn.waited:
                self._tallies.waited(identity_of(turn.limit), 0.0)
        return Again(max(turn.seconds for turn in turns), since)

    def _take(self, turns: list[_Turn], now: float) -> float:
        taken = [turn for turn in turns if not turn.is_late]  # a shadow that is late lets pass
        for turn in taken:
            turn.pace.meter.take(1, now)
            if turn.waited and turn.pace.waiters is not None:
                self._tallies.has_waited(identity_of(turn.limit), turn.waited)
        waits = [turn for turn in taken if turn.seconds]
        for turn in waits:
            self._tallies.waited(identity_of(turn.limit), turn.seconds)
        enforced = (turn.seconds for turn in waits if turn.limit.mode == "enforce")
        return max(enforced, default=0.0)

    def figures(self, now: float) -> list[RuleFigures]:
        """How many limits there are, who waits, and what they did."""
        return self._tallies.figures((it, pace.waiting(now)) for it, pace in self._paces.items())

    def _turn(self, limit: AppliedLimit, since: float, now: float) -> _Turn:
        pace = self._pace(limit, now)
        return _Turn(limit, pace, pace.wait(since, now), max(0.0, now - since))

    def _pace(self, limit: AppliedLimit, now: float) -> _Pace:
        identity = identity_of(limit)
        pace = self._paces.get(identity)
        if pace is None:
            pace = self._paces[identity] = self._new(limit)
            self._size += identity[0].size
            heappush(self._full, (now, next(self._tickets), identity))
        if (pace.meter.rate, pace.meter.burst) != (limit.rate, limit.burst):
            pace.meter.change(limit.rate, limit.burst, now)
        return pace

    def _new(self, limit: AppliedLimit) -> _Pace:
        on_loss = on_loss_of(limit)
        if self._supply is None or on_loss is None:
            return _Pace(Meter(limit.rate, limit.burst))
        name, _ = identity_of(limit)
        meter = self._supply.meter(name.text, limit.rate, limit.burst, on_loss)
        return _Pace(meter, Waiters(PATIENCE[limit.dimension]))

    def _forget(self, now: float) -> None:
        for _ in range(FORGOTTEN_AT_ONCE):
            if not self._full or (self._full[0][0] > now and self._size <= self._most):
                return
            when, ticket, identity = self._full[0]
            full_at = self._paces[identity].full_at(now)
            if full_at > max(now, when):
                heapreplace(self._full, (full_at, ticket, identity))
            else:
                heappop(self._full)
                del self._paces[identity]
                self._size -= identity[0].size
