"""Limits that processes share: the units that one process has reserved, and what it asks for.

A `SharedMeter` stands where a plain meter does, so all accounts that wait are served by the same
turns. It hands out units that it reserved before (`reservations`). When half of them are used it
wants more: about twice what it used during the last reservation. An account that finds nothing
waits for the answer, and until the reserved units are earned.

A `Supply` holds all shared limits of a process, says which want to ask, and passes the answers on.
While it is *lost* nobody can be asked. Then, or while one limit has no answer, that limit goes on
as its rule says; it may take its part of the rate (`local_share`) by a meter of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gateway.policy.gcra import MOST_DEBT, ONE, Meter
from gateway.policy.reservations import RESERVATION_SECONDS, Reserved, UnitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

AHEAD = 2.0
"""Reserve so many times the units used during `RESERVATION_SECONDS`: half of them remain when the
meter asks again, and the reservations of a new user double each time."""

KEPT = 0.5
"""Seconds until reserved units that nobody uses are given back to all processes. A limit that is
asked for less often than this reserves nothing in advance."""

AGAIN = 0.5
"""Seconds after which a limit that had no answer is asked for again."""

LEAST_TIME = 0.01
"""Divide use by so many seconds at least: a burst says nothing about the next second."""

AT_ONCE = 100
"""Limits that are asked for in one call. Each costs 20 µs, so a call takes a turn of the data
plane."""

_ENDLESS = 1e18


class OnLoss(StrEnum):
    """What holds while nobody can be asked."""

    LOCAL_SHARE = "local_share"
    OPEN = "open"
    CLOSED = "closed"


class Metered(Protocol):
    """What a limit hands out of; see `gcra.Meter`."""

    rate: float
    burst: float
    forgiven: float

    def available(self, now: float) -> float: ...

    def is_spent(self, now: float) -> bool: ...

    def take(self, units: float, now: float) -> None: ...

    def give_back(self, units: float, now: float) -> None: ...

    def ready_at(self, units: float, now: float) -> float:
        """Infinity: when, is still to be learned."""
        ...

    def full_at(self, now: float) -> float: ...

    def change(self, rate: float, burst: float, now: float) -> None: ...


class SharedMeter:
    """`key`: the same in all processes; `owner`: whose it is in this one. Made by a `Supply`.

    `lost`: the last question about this limit had no answer, though others had.
    """

    __slots__ = (
        "_alone",
        "_asked_at",
        "_comes_at",
        "_coming",
        "_last",
        "_loss",
        "_retry_at",
        "_stock",
        "_supply",
        "_taken",
        "asking",
        "burst",
        "forgiven",
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
        self.forgiven = 0.0
        self.used_at = float("-inf")
        self.asking = self.watched = False  # a question is out; looked at when it is idle
        self._supply = supply
        self._stock = 0.0  # may be used now; below zero: owed
        self._coming, self._comes_at = 0.0, 0.0
        self._taken, self._asked_at, self._last = 0.0, float("-inf"), 0.0
        self._alone: Meter | None = None
        self._loss = 0
        self.lost, self._retry_at = False, float("inf")

    # -- as a meter --------------------------------------------------------------------------

    def available(self, now: float) -> float:
        """Units that may be taken now; below zero: debt."""
        if self._is_alone:
            return self._lost_available(now)
        self._ripen(now)
        return self._stock

    def is_spent(self, now: float) -> bool:
        """Nothing is left, and what is reserved comes later. Who has not asked knows nothing."""
        if self.available(now) >= ONE:
            return False
        if self._is_alone:
            return self.on_loss is not OnLoss.OPEN
        return self._coming > 0 or self._stock < 0

    def take(self, units: float, now: float) -> None:
        """Charge what passes, even what is not there."""
        if not units:
            return
        self.used_at = now
        self._taken += units
        if self._is_alone:
            self._lost_take(units, now)
            return
        self._ripen(now)
        self._stock -= units
        least = -MOST_DEBT * self.rate
        self.forgiven += max(0.0, least - self._stock)
        self._stock = max(least, self._stock)
        is_hot = self._last > 1 or now - self._asked_at < KEPT
        if self._stock < 0 or (is_hot and self._stock < self._last / 2):
            self.want()

    def give_back(self, units: float, now: float) -> None:
        """Return what was taken in advance and not used."""
        self._taken = max(0.0, self._taken - units)
        if self._is_alone:
            self._lost_take(-units, now)
            return
        self._stock += units
        self._supply.watch(self, now)

    def ready_at(self, units: float, now: float) -> float:
        """When so many units may be taken; infinity: not known until there is an answer."""
        if self.available(now) >= units * ONE:
            return now
        if self._is_alone:
            return self._lost_ready_at(units, now)
        if self._coming:
            return self._comes_at
        self.want()
        return float("inf")

    def full_at(self, now: float) -> float:
        """From when on this meter is as good as a new one: others keep what it took."""
        if self._is_alone:
            return now if self.on_loss is OnLoss.OPEN else self._lost_meter(now).full_at(now)
        self._ripen(now)
        rests = not (self._stock or self._coming or self.asking)
        return now if rests else now + KEPT

    def change(self, rate: float, burst: float, now: float) -> None:
        """Go on at another rate."""
        self._ripen(now)
        self.rate, self.burst = rate, burst
        if self._alone is not None:
            self._alone.change(*self._part, now)

    # -- questions ---------------------------------------------------------------------------

    def want(self) -> None:
        """More is needed. One question at a time, and none while a reservation is still to come."""
        if not (self.asking or self._coming):
            self._supply.want(self)

    def ask(self, now: float) -> UnitRequest:
        """The question for more."""
        used = self._taken / max(LEAST_TIME, now - self._asked_at)
        self.asking, self._asked_at, self._taken = True, now, 0.0
        return self._ask(max(1.0, used * RESERVATION_SECONDS * AHEAD), max(0.0, -self._stock))

    def returned(self) -> UnitRequest:
        """What gives back all that is here."""
        stock, self._stock = self._stock, 0.0
        self.asking = True
        return self._ask(0.0, -stock)

    def _ask(self, units: float, owed: float) -> UnitRequest:
        return UnitRequest(self.key, self.rate, self.burst, units, owed)

    def answered(self, ask: UnitRequest, reserved: Reserved, now: float) -> None:
        """What was owed is charged, and so much will come."""
        self.asking = self.lost = False
        self._stock += max(0.0, ask.owed)
        if reserved.units:
            self._coming, self._comes_at = reserved.units, now + reserved.delay
            self._last = reserved.units
            self._supply.watch(self, self._comes_at)
        self._ripen(now)
        if self._stock < 0:
            self.want()

    def unanswered(self, ask: UnitRequest) -> None:
        """It was never heard: nothing is charged, and nothing given back."""
        self.asking = False
        self._stock -= min(0.0, ask.owed)

    def refused(self, ask: UnitRequest, now: float) -> None:
        """This limit has no answer: it goes on alone. It is asked for again while it is used."""
        self.unanswered(ask)
        self._ripen(now)
        self.lost, self._retry_at = True, now + AGAIN

    def idle_since(self, now: float) -> float | None:
        """Since when what is here was not used; None: nothing is here."""
        self._ripen(now)
        if self._stock <= 0 and not self._coming:
            return None
        return max(self.used_at, self._comes_at)

    def _ripen(self, now: float) -> None:
        if self._alone is not None and not self._is_alone:
            # What was owed alone is still owed.
            self._stock += min(0.0, self._alone.available(now))
            self._alone = None
        if self._coming and now >= self._comes_at:
            self._stock += self._coming
            self._coming = 0.0

    # -- while nobody can be asked -----------------------------------------------------------

    @property
    def _is_alone(self) -> bool:
        return self._supply.lost or self.lost

    def _ask_again(self, now: float) -> None:
        if self.lost and now >= self._retry_at and not (self._supply.lost or self.asking):
            self._supply.want(self)

    @property
    def _part(self) -> tuple[float, float]:
        """The rate and the burst that are ours."""
        return self.rate / self._supply.processes, max(1.0, self.burst / self._supply.processes)

    def _lost_meter(self, now: float) -> Meter:
        """A meter of our part, which begins with what was here; full where there never was any."""
        if self._alone is None or self._loss != self._supply.losses:
            self._alone = Meter(*self._part)
            if self._last:
                self._alone.take(max(0.0, self._alone.burst - self._stock), now)
            self._loss = self._supply.losses
            self._stock = self._coming = 0.0
        return self._alone

    def _lost_take(self, units: float, now: float) -> None:
        """Where there is no limit nothing is owed for it later. Below zero: given back."""
        if self.on_loss is OnLoss.OPEN:
            return
        if units > 0:
            self._lost_meter(now).take(units, now)
        else:
            self._lost_meter(now).give_back(-units, now)

    def _lost_available(self, now: float) -> float:
        self._ask_again(now)
        if self.on_loss is OnLoss.OPEN:
            return _ENDLESS
        there = self._lost_meter(now).available(now)
        return min(0.0, there) if self.on_loss is OnLoss.CLOSED else there

    def _lost_ready_at(self, units: float, now: float) -> float:
        if self.on_loss is OnLoss.CLOSED:
            return float("inf") if self._supply.lost else max(now, self._retry_at)
        return self._lost_meter(now).ready_at(units, now)


class Asked(NamedTuple):
    """A question that is out."""

    meter: SharedMeter
    ask: UnitRequest


class Supply:
    """All shared limits of a process. `wake` is called when somebody wants something.

    `processes`: how many share them, as was heard last. `losses`: how often nobody could be asked.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self.processes = 1
        self.lost = False
        self.losses = 0
        # Only this dictionary forgets its first entry at no cost.
        self._wanting: OrderedDict[SharedMeter, None] = OrderedDict()
        self._watched: list[tuple[float, int, SharedMeter]] = []
        self._tickets = count()

    def meter(
        self, key: str, rate: float, burst: float, on_loss: OnLoss, owner: Hashable = None
    ) -> SharedMeter:
        """Of one limit. It asks at once: whoever opens a producer will send."""
        meter = SharedMeter(self, key, rate, burst, on_loss, owner)
        meter.want()
        return meter

    def want(self, meter: SharedMeter) -> None:
        """A meter is to ask for more."""
        if meter not in self._wanting:
            self._wanting[meter] = None
            self.wake()

    def watch(self, meter: SharedMeter, now: float) -> None:
        """See to it that what is not used goes back."""
        if not meter.watched:
            meter.watched = True
            heappush(self._watched, (now + KEPT, next(self._tickets), meter))

    def next_time(self, now: float) -> float:
        """When there is something to ask; infinity: when somebody wants something."""
        if self._wanting:
            return now
        return self._watched[0][0] if self._watched else float("inf")

    def questions(self, now: float, most: int = AT_ONCE) -> list[Asked]:
        """What is to be asked now, who waits for longest first; each is then answered, or not."""
        asked: list[Asked] = []
        while self._wanting and len(asked) < most:
            meter, _ = self._wanting.popitem(last=False)
            asked.append(Asked(meter, meter.ask(now)))
        while len(asked) < most and self._watched and self._watched[0][0] <= now:
            meter = heappop(self._watched)[2]
            meter.watched = False
            since = meter.idle_since(now)
            if since is not None and (meter.asking or since > now - KEPT):
                self.watch(meter, max(since, now - KEPT / 2))
            elif since is not None:
                asked.append(Asked(meter, meter.returned()))
        return asked

    def answered(
        self, asked: Iterable[Asked], answers: Sequence[Reserved | None], now: float
    ) -> None:
        """The answers, in the order of the questions; None: there is none for this limit alone."""
        for (meter, ask), reserved in zip(asked, answers, strict=True):
            if reserved is None:
                meter.refused(ask, now)
            else:
                meter.answered(ask, reserved, now)

    def unanswered(self, asked: Iterable[Asked]) -> None:
        """Nobody answered."""
        for meter, ask in asked:
            meter.unanswered(ask)

    def lose(self) -> None:
        """Nobody can be asked."""
        if not self.lost:
            self.lost = True
            self.losses += 1
            self._wanting.clear()

    def regain(self) -> None:
        """Somebody answers again."""
        self.lost = False
