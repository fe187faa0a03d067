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
    """`rate` in units per second; at most `burst` units are saved up. Times are of one monotonic
    clock.

    `forgiven`: units that were taken beyond `MOST_DEBT`.
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
        """Return the units that may be taken now; below zero: debt."""
        return self.burst - max(0.0, self._arrival - now) * self.rate

    def is_spent(self, now: float) -> bool:
        """Return whether not one unit is left."""
        return self.available(now) < WHOLE_UNIT

    def take(self, units: float, now: float) -> None:
        """Charge units that pass, more than are available too."""
        arrival = max(self._arrival, now) + units / self.rate
        latest = now + self.burst / self.rate + MOST_DEBT
        self.forgiven += max(0.0, arrival - latest) * self.rate
        self._arrival = min(arrival, latest)

    def give_back(self, units: float, now: float) -> None:
        """Return units that were taken in advance and not used. The burst stays the most that is
        saved up."""
        self._arrival = max(self._arrival, now) - units / self.rate

    def ready_at(self, units: float, now: float) -> float:
        """Return when so many units may be taken, if nobody takes any before; `now` at the
        earliest."""
        missing = units - self.available(now)
        return now if missing <= 0 else now + missing / self.rate + _MARGIN

    def full_at(self, now: float) -> float:
        """Return when this meter is as good as a new one."""
        return max(self._arrival, now)

    def change(self, rate: float, burst: float, now: float) -> None:
        """Continue at another rate. Saved units stay, up to the new burst, and so does debt."""
        available = min(self.available(now), burst)
        self.rate, self.burst = rate, burst
        self._arrival = now
        self.take(burst - available, now)
