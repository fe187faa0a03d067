"""Limits that several processes share: one ledger of reservations, from which all of them reserve
units.

A process reserves units in advance, and the response says from when on it may use them. The ledger
keeps one GCRA time for each limit (see `gcra`), and advances it by the reserved units at once. So
requests are served in the order in which they come, the sum over all processes is exact however
long responses take, and no process has to ask twice. A reservation lasts for about
`RESERVATION_SECONDS`, so a busy process sends about ten requests a second, however many units it
uses.

A process may use more units than it has reserved, because a frame passes whole. It states the
excess in its next request. A process that has used fewer units gives the rest back.

`gateway.fleet.valkey` does the same in a store that replicas share.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVATION_SECONDS = 0.1
"""Seconds of the rate that are reserved at a time by all processes that want all they can get."""

ACTIVE = 1.0
"""Seconds after its last request during which a process counts among those that share a limit."""


class UnitRequest(NamedTuple):
    """A process's request for units of one limit. `rate`: units per second. `burst`: units.

    `units`: how many are wanted; at least one of them is given. 0: none are wanted, and the other
    processes need not share the limit with this process. `owed`: units that the process used beyond
    its reservation; a negative number: units that it reserved and did not use.
    """

    key: str
    rate: float
    burst: float
    units: float
    owed: float = 0.0


class Reserved(NamedTuple):
    """The response to a request. `units`: how many may be used after `delay` seconds. By then the
    process's debt is earned too."""

    units: float
    delay: float


class _Limit:
    """`arrival`: when all reserved units will have been earned. `requested_at`: time of the last
    request of each process. `is_resting`: it has an entry in `Reservations._resting`."""

    __slots__ = ("arrival", "is_resting", "requested_at")

    def __init__(self) -> None:
        self.arrival = float("-inf")
        self.requested_at: dict[str, float] = {}
        self.is_resting = False

    def share(self, process: str, now: float) -> int:
        """Return the number of processes that share the limit, including the one that asks."""
        self.leave(process)
        self.requested_at[process] = now
        while (first := next(iter(self.requested_at.items())))[1] <= now - ACTIVE:
            del self.requested_at[first[0]]
        return len(self.requested_at)

    def leave(self, process: str) -> None:
        """Stop counting a process among those that share the limit, so that the other processes get
        its share."""
        self.requested_at.pop(process, None)

    def settle(self, ask: UnitRequest, now: float) -> None:
        """Charge the debt that a request states, or take back the unused units that it states."""
        self.arrival = max(self.arrival, now) + ask.owed / ask.rate

    def take(self, ask: UnitRequest, active: int, now: float) -> float:
        """Reserve units, and return how many: at most one of `active` equal parts of the units of
        `RESERVATION_SECONDS`, or of the saved units if more."""
        saved = ask.burst - (max(self.arrival, now) - now) * ask.rate
        most = max(1.0, max(ask.rate * RESERVATION_SECONDS, saved) / active)
        units = min(max(1.0, ask.units), most)
        self.arrival = max(self.arrival, now) + units / ask.rate
        return units

    def delay(self, ask: UnitRequest, now: float) -> float:
        """Return the seconds until the reserved units may be used: until all of them are earned
        except a burst, which may be used before it is earned."""
        return max(0.0, self.arrival - ask.burst / ask.rate - now)


class Reservations:
    """The ledger of all shared limits. All times are of one clock. A limit is forgotten when it is
    the same as a new one."""

    def __init__(self) -> None:
        self._limits: dict[str, _Limit] = {}
        self._resting: list[tuple[float, str]] = []  # when each may be forgotten

    def __len__(self) -> int:
        return len(self._limits)

    def reserve(self, process: str, asks: Iterable[UnitRequest], now: float) -> list[Reserved]:
        """Reserve units for a process. Return one response for each request, in the order of the
        requests."""
        self._forget(now)
        return [self._answer(process, ask, now) for ask in asks]

    def _answer(self, process: str, ask: UnitRequest, now: float) -> Reserved:
        limit = self._limits.get(ask.key)
        if limit is None:
            limit = self._limits[ask.key] = _Limit()
        limit.settle(ask, now)
        units = 0.0
        if ask.units > 0:
            units = limit.take(ask, limit.share(process, now), now)
        else:
            limit.leave(process)
        self._rest(limit, ask.key, now)
        return Reserved(units, limit.delay(ask, now))

    def _rest(self, limit: _Limit, key: str, now: float) -> None:
        if not limit.is_resting:
            limit.is_resting = True
            heappush(self._resting, (max(limit.arrival, now + ACTIVE), key))

    def _forget(self, now: float) -> None:
        """Drop the limits that are as good as new ones."""
        while self._resting and self._resting[0][0] <= now:
            _, key = heappop(self._resting)
            limit = self._limits[key]
            limit.is_resting = False
            if max(limit.arrival, *(at + ACTIVE for at in limit.requested_at.values()), now) <= now:
                del self._limits[key]
            else:
                self._rest(limit, key, now)
