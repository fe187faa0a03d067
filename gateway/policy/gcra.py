"""A meter: the GCRA (generic cell rate algorithm) of ATM networks, a token bucket in one float.

The meter keeps one moment, the *theoretical arrival time*: when all units taken so far will have
been earned at the rate. Taking n units moves it n/rate seconds ahead; further than burst/rate ahead
of now, the meter is in debt. No timer refills anything, so an unused meter costs nothing.
"""

from __future__ import annotations

MOST_DEBT = 10.0
"""Seconds of the rate that may be owed; more is forgiven, and counted. A frame larger than the
available units passes, so there is debt; but clients that wait for it to be earned give up after
30 s, and their queues need time as well."""

WHOLE_UNIT = 0.999
"""Units that count as one whole unit: a rounded moment must not cost a message."""

_MARGIN = 1e-6
"""Seconds added to a promised moment, so that rounding never makes it too early."""


class Meter:
    """A GCRA meter. `rate`: units per second. `burst`: the most units that are saved up. Times are
    seconds of one monotonic clock.

    `forgiven`: units taken beyond `MOST_DEBT`, whose debt was forgiven.
    """

    __slots__ = ("_arrival", "burst", "forgiven", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        if not (rate > 0 and burst > 0):
            raise ValueError(f"a meter needs a rate and a burst above zero, not {rate} and {burst}")
        self.rate = rate
        self.burst = burst
        self.forgiven = 0.0
        self._arrival = float("-inf")

    def available(self, now: float) -> float:
        """Return the units that may be taken now; below zero the meter is in debt."""
        return self.burst - max(0.0, self._arrival - now) * self.rate

    def is_spent(self, now: float) -> bool:
        """Return whether less than one whole unit is left."""
        return self.available(now) < WHOLE_UNIT

    def take(self, units: float, now: float) -> None:
        """Charge units that pass. More than the available ones leave a debt."""
        arrival = max(self._arrival, now) + units / self.rate
        latest = now + self.burst / self.rate + MOST_DEBT
        self.forgiven += max(0.0, arrival - latest) * self.rate
        self._arrival = min(arrival, latest)

    def give_back(self, units: float, now: float) -> None:
        """Add units that were taken in advance and not used. No more than `burst` is saved up."""
        self._arrival = max(self._arrival, now) - units / self.rate

    def ready_at(self, units: float, now: float) -> float:
        """Return the time at which so many units will be available, if none are taken before; `now`
        if they are available already."""
        missing = units - self.available(now)
        return now if missing <= 0 else now + missing / self.rate + _MARGIN

    def full_at(self, now: float) -> float:
        """Return the time from which the meter is as good as a new one."""
        return max(self._arrival, now)

    def change(self, rate: float, burst: float, now: float) -> None:
        """Continue at another rate and burst. Saved units stay, up to the new burst, and so does
        debt."""
        available = min(self.available(now), burst)
        self.rate, self.burst = rate, burst
        self._arrival = now
        self.take(burst - available, now)
