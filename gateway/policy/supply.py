"""Limits that processes share, as one process sees them: its stock of reserved units.

A `SharedMeter` replaces the plain meter of a limit, so queues, leases and debts work as they do
without sharing. It hands out units from its *stock*, which it has reserved in advance (see
`reservations`). When half of the last reservation is used, it requests about twice the units that
it used in that time. If an account finds no stock, it waits for the response, and until the
reserved units are earned. Unused stock is given back.

A `Supply` has all shared meters of a process. It collects their requests for one call to the store,
and hands each response to its meter. While the store does not respond at all, the supply is *lost*.
While the store fails for one limit alone, only the meter of that limit is lost. A lost meter works
as its rule's `OnLoss` says; with `local_share`, a plain meter hands out this process's part of the
rate.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gateway.policy.gcra import WHOLE_UNIT, Meter
from gateway.policy.reservations import RESERVATION_SECONDS, Reserved, UnitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

RESERVED_AHEAD = 2.0
"""Reserve so many times the units used during `RESERVATION_SECONDS`: half of them remain when the
meter asks again, and the reservations of a new user double each time."""

KEPT = 0.5
"""Seconds after which unused stock is given back to all processes. A limit that is used less often
than this reserves nothing in advance."""

AGAIN = 0.5
"""Seconds after which units of a limit for which the store failed are requested once more."""

LEAST_TIME = 0.01
"""Seconds to divide use by at least: a burst says nothing about the next second."""

AT_ONCE = 100
"""Requests in one call. Each costs 20 µs, so a call takes a turn of the data plane."""

_UNLIMITED = 1e18


class OnLoss(StrEnum):
    """How a shared limit works while the store is unreachable. `LOCAL_SHARE`: each process uses its
    part of the rate. `OPEN`: as if there were no limit. `CLOSED`: as if no unit were left."""

    LOCAL_SHARE = "local_share"
    OPEN = "open"
    CLOSED = "closed"


class Metered(Protocol):
    """The interface of a limit's meter; see `gcra.Meter`."""

    rate: float
    burst: float

    def available(self, now: float) -> float: ...

    def is_spent(self, now: float) -> bool: ...

    def take(self, units: float, now: float) -> None: ...

    def give_back(self, units: float, now: float) -> None: ...

    def ready_at(self, units: float, now: float) -> float:
        """Return the time at which `units` may be taken; infinity if that is not known until the
        store responds."""
        ...

    def full_at(self, now: float) -> float: ...

    def change(self, rate: float, burst: float, now: float) -> None: ...


def used_share(meter: Metered, now: float) -> float:
    """Return how much of a meter's burst is used: 0 if the meter is full, 1 if it is spent, more
    than 1 if it is in debt."""
    return 1.0 - meter.available(now) / meter.burst


class SharedMeter:
    """The meter of a limit that processes share, made by a `Supply`. `key`: the limit's name, which
    is the same in all processes. `owner`: what identifies the limit in this process.

    `asking`: a request to the store has no response yet. `watched`: the supply will check whether
    the stock is unused. `lost`: the store failed for this limit, though not for others.
    """

    __slots__ = (
        "_comes_at",
        "_coming",
        "_fallback",
        "_fallback_loss",
        "_last",
        "_requested_at",
        "_retry_at",
        "_stock",
        "_supply",
        "_taken",
        "asking",
        "burst",
        "key",
        "lost",
        "on_loss",
        "owner",
        "rate",
        "used_at",
        "watched",
    )

    def __init__(
        self,
        supply: Supply,
        key: str,
        rate: float,
        burst: float,
        on_loss: OnLoss,
        owner: Hashable,
    ) -> None:
        self.key, self.owner = key, owner
        self.rate, self.burst, self.on_loss = rate, burst, on_loss
        self.used_at = float("-inf")
        self.asking = self.watched = False
        self._supply = supply
        self._stock = 0.0  # may be used now; below zero: debt
        self._coming, self._comes_at = 0.0, 0.0  # reserved units, and when they may be used
        self._last = 0.0  # units of the last reservation
        self._taken, self._requested_at = 0.0, float("-inf")  # taken since then
        self._fallback: Meter | None = None  # of this process's part, while the store is lost
        self._fallback_loss = 0  # the loss (`Supply.losses`) that it was made for
        self.lost, self._retry_at = False, float("inf")

    # -- as a meter --------------------------------------------------------------------------

    def available(self, now: float) -> float:
        """Return how many units may be taken now; a negative number means that the meter is in
        debt."""
        if self._is_lost:
            return self._fallback_available(now)
        self._update(now)
        return self._stock

    def is_spent(self, now: float) -> bool:
        """Return whether no unit is left, so that a frame or request has to wait until reserved
        units are earned. Before its first response from the store, a meter does not count as spent.
        """
        if self.available(now) >= WHOLE_UNIT:
            return False
        if self._is_lost:
            return self.on_loss is not OnLoss.OPEN
        return self._coming > 0 or self._stock < 0

    def take(self, units: float, now: float) -> None:
        """Take units from the stock. If more are taken than the stock has, the meter is in debt."""
        if not units:
            return
        self.used_at = now
        self._taken += units
        if self._is_lost:
            if self.on_loss is not OnLoss.OPEN:  # an open limit leaves no debt
                self._fallback_meter(now).take(units, now)
            return
        self._update(now)
        self._stock -= units
        is_busy = self._last > 1 or now - self._requested_at < KEPT
        if self._stock < 0 or (is_busy and self._stock < self._last / 2):
            self.want()

    def give_back(self, units: float, now: float) -> None:
        """Add units to the stock that were taken in advance and not used."""
        self._taken = max(0.0, self._taken - units)
        if self._is_lost:
            if self.on_loss is not OnLoss.OPEN:
                self._fallback_meter(now).give_back(units, now)
            return
        self._stock += units
        self._supply.watch(self, now)

    def ready_at(self, units: float, now: float) -> float:
        """Return the time at which `units` may be taken; infinity if that is not known until the
        store responds."""
        if self.available(now) >= units * WHOLE_UNIT:
            return now
        if self._is_lost:
            return self._fallback_ready_at(units, now)
        if self._coming:
            return self._comes_at
        self.want()
        return float("inf")

    def full_at(self, now: float) -> float:
        """Return the time from which this meter may be replaced by a new one. Nothing is lost by
        that, because the store remembers the units that were taken."""
        if self._is_lost:
            return now if self.on_loss is OnLoss.OPEN else self._fallback_meter(now).full_at(now)
        self._update(now)
        is_idle = not (self._stock or self._coming or self.asking)
        return now if is_idle else now + KEPT

    def change(self, rate: float, burst: float, now: float) -> None:
        """Change the rate and the burst."""
        self._update(now)
        self.rate, self.burst = rate, burst
        if self._fallback is not None:
            self._fallback.change(*self._part, now)

    # -- requests ----------------------------------------------------------------------------

    def want(self) -> None:
        """Request more units in the next call to the store. Do nothing if an earlier request has no
        response yet, or if reserved units are not yet in the stock."""
        if not (self.asking or self._coming):
            self._supply.want(self)

    def ask(self, now: float) -> UnitRequest:
        """Return the request for more units, which the caller sends now. The request also states
        the meter's debt."""
        used = self._taken / max(LEAST_TIME, now - self._requested_at)
        self.asking, self._requested_at, self._taken = True, now, 0.0
        units = max(1.0, used * RESERVATION_SECONDS * RESERVED_AHEAD)
        return self._request(units, owed=max(0.0, -self._stock))

    def give_up_stock(self) -> UnitRequest:
        """Empty the stock, and return the request that gives it back to the store."""
        stock, self._stock = self._stock, 0.0
        self.asking = True
        return self._request(0.0, owed=-stock)

    def _request(self, units: float, owed: float) -> UnitRequest:
        return UnitRequest(self.key, self.rate, self.burst, units, owed)

    def answered(self, ask: UnitRequest, reserved: Reserved, now: float) -> None:
        """Take the response to a request: the store has charged the debt, and the reserved units
        are added to the stock when they are earned."""
        self.asking = self.lost = False
        self._stock += max(0.0, ask.owed)
        if reserved.units:
            self._coming, self._comes_at = reserved.units, now + reserved.delay
            self._last = reserved.units
            self._supply.watch(self, self._comes_at)
        self._update(now)
        if self._stock < 0:
            self.want()

    def unanswered(self, ask: UnitRequest) -> None:
        """Restore the meter's state, as if a request had not been sent. Call this if the store did
        not respond to the request."""
        self.asking = False
        self._stock -= min(0.0, ask.owed)

    def refused(self, ask: UnitRequest, now: float) -> None:
        """Record that the store failed for this limit: the limit's fallback is used from now on.
        While the limit is in use, the supply asks the store for this limit again every `AGAIN`
        seconds."""
        self.unanswered(ask)
        self._update(now)
        self.lost, self._retry_at = True, now + AGAIN

    def idle_since(self, now: float) -> float | None:
        """Return the time since which the stock has not been used; None if there is no stock."""
        self._update(now)
        if self._stock <= 0 and not self._coming:
            return None
        return max(self.used_at, self._comes_at)

    def _update(self, now: float) -> None:
        """Add to the stock the units that may be used by now, and the debt of an ended fallback."""
        if self._fallback is not None and not self._is_lost:
            self._stock += min(0.0, self._fallback.available(now))
            self._fallback = None
        if self._coming and now >= self._comes_at:
            self._stock += self._coming
            self._coming = 0.0

    # -- while the store does not answer -----------------------------------------------------

    @property
    def _is_lost(self) -> bool:
        return self._supply.lost or self.lost

    @property
    def _part(self) -> tuple[float, float]:
        """Return this process's part of rate and burst."""
        return self.rate / self._supply.processes, max(1.0, self.burst / self._supply.processes)

    def _fallback_meter(self, now: float) -> Meter:
        """Return the meter of this process's part. It begins with the stock, or full if there never
        was a reservation."""
        if self._fallback is None or self._fallback_loss != self._supply.losses:
            self._fallback = Meter(*self._part)
            if self._last:
                self._fallback.take(max(0.0, self._fallback.burst - self._stock), now)
            self._fallback_loss = self._supply.losses
            self._stock = self._coming = 0.0
        return self._fallback

    def _fallback_available(self, now: float) -> float:
        """Return the units that may be taken now. Ask for this limit again when it is time."""
        if self.lost and now >= self._retry_at and not (self._supply.lost or self.asking):
            self._supply.want(self)
        if self.on_loss is OnLoss.OPEN:
            return _UNLIMITED
        available = self._fallback_meter(now).available(now)
        return min(0.0, available) if self.on_loss is OnLoss.CLOSED else available

    def _fallback_ready_at(self, units: float, now: float) -> float:
        if self.on_loss is OnLoss.CLOSED:
            return float("inf") if self._supply.lost else max(now, self._retry_at)
        return self._fallback_meter(now).ready_at(units, now)


class SentRequest(NamedTuple):
    """A meter's request that was sent to the store and has no response yet."""

    meter: SharedMeter
    ask: UnitRequest


class Supply:
    """All shared meters of a process. `wake`: called when a meter wants to send a request.

    `processes`: the number of processes that share the limits, as of the last heartbeat. `lost`:
    the store does not respond. `losses`: how often the store was lost.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self.processes = 1
        self.lost = False
        self.losses = 0
        # An OrderedDict drops its first entry in constant time, a dict does not.
        self._wanting: OrderedDict[SharedMeter, None] = OrderedDict()
        self._watched: list[tuple[float, int, SharedMeter]] = []  # when to check each
        self._tickets = count()

    def meter(
        self, key: str, rate: float, burst: float, on_loss: OnLoss, owner: Hashable = None
    ) -> SharedMeter:
        """Return a new meter, which requests units at once, because a new producer will soon send.
        `key`, `owner`: see `SharedMeter`."""
        meter = SharedMeter(self, key, rate, burst, on_loss, owner)
        meter.want()
        return meter

    def want(self, meter: SharedMeter) -> None:
        """Send the meter's request for units in the next call to the store."""
        if meter not in self._wanting:
            self._wanting[meter] = None
            self.wake()

    def watch(self, meter: SharedMeter, now: float) -> None:
        """Schedule a check for the time `now` + `KEPT` seconds: units that the meter has in stock
        and has not used by then are given back."""
        if not meter.watched:
            meter.watched = True
            heappush(self._watched, (now + KEPT, next(self._tickets), meter))

    def next_time(self, now: float) -> float:
        """Return the time of the next call to the store; infinity: no call is due until `wake` is
        called."""
        if self._wanting:
            return now
        return self._watched[0][0] if self._watched else float("inf")

    def questions(self, now: float, most: int = AT_ONCE) -> list[SentRequest]:
        """Return the requests of the next call to the store, those that have waited longest first;
        at most `most`. The caller must then pass them to `answered` with the store's responses, or
        to `unanswered`."""
        requests: list[SentRequest] = []
        while self._wanting and len(requests) < most:
            meter, _ = self._wanting.popitem(last=False)
            requests.append(SentRequest(meter, meter.ask(now)))
        while len(requests) < most and self._watched and self._watched[0][0] <= now:
            meter = heappop(self._watched)[2]
            meter.watched = False
            since = meter.idle_since(now)
            if since is not None and (meter.asking or since > now - KEPT):
                self.watch(meter, max(since, now - KEPT / 2))
            elif since is not None:
                requests.append(SentRequest(meter, meter.give_up_stock()))
        return requests

    def answered(
        self, requests: Iterable[SentRequest], answers: Sequence[Reserved | None], now: float
    ) -> None:
        """Hand each response to the meter that sent the request. `answers`: the responses in the
        order of the requests; None: the store failed for that limit."""
        for (meter, ask), reserved in zip(requests, answers, strict=True):
            if reserved is None:
                meter.refused(ask, now)
            else:
                meter.answered(ask, reserved, now)

    def unanswered(self, requests: Iterable[SentRequest]) -> None:
        """Restore the state of the meters whose requests got no response from the store."""
        for meter, ask in requests:
            meter.unanswered(ask)

    def lose(self) -> None:
        """Record that the store does not respond: all meters use their fallbacks from now on."""
        if not self.lost:
            self.lost = True
            self.losses += 1
            self._wanting.clear()

    def regain(self) -> None:
        """Record that the store of shared limits responds again."""
        self.lost = False
