"""A meter: how much may pass at a rate, kept as one moment in time (the GCRA of ATM networks).

The moment is the *theoretical arrival time*: when everything that was taken will have been earned.
Nothing has to be refilled by a timer, and a meter that nobody touches costs nothing.
"""

from __future__ import annotations

MOST_DEBT = 10.0
"""Seconds of the rate that may be owed; what is taken beyond is forgiven, and counted. A frame that
is larger than what is left passes, so there is debt; but whoever waits for it to be earned has
clients that give up after 30 s, and their queues need time as well."""

ONE = 0.999
"""Units that are one whole unit: a rounded moment must not cost a message."""

_MARGIN = 1e-6
"""Seconds that a moment is put off, so that rounding never makes it too early."""


class Meter:
    """`rate` in units per second, at most `burst` units saved up. Times are of one monotonic clock.

    `forgiven`: units that were taken beyond the bound of debt.
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
        """Units that may be taken now; below zero: debt."""
        return self.burst - max(0.0, self._arrival - now) * self.rate

    def is_spent(self, now: float) -> bool:
        """Not one unit is left."""
        return self.available(now) < ONE

    def take(self, units: float, now: float) -> None:
        """Charge what passes, even what is not there."""
        arrival = max(self._arrival, now) + units / self.rate
        latest = now + self.burst / self.rate + MOST_DEBT
        self.forgiven += max(0.0, arrival - latest) * self.rate
        self._arrival = min(arrival, latest)

    def give_back(self, units: float, now: float) -> None:
        """Return what was taken in advance and not used. More than the burst is never saved."""
        self._arrival = max(self._arrival, now) - units / self.rate

    def ready_at(self, units: float, now: float) -> float:
        """When so many units may be taken, if nobody takes any before; `now` at the earliest."""
        missing = units - self.available(now)
        return now if missing <= 0 else now + missing / self.rate + _MARGIN

    def full_at(self, now: float) -> float:
        """From when on this meter is as good as a new one."""
        return max(self._arrival, now)

    def change(self, rate: float, burst: float, now: float) -> None:
        """Go on at another rate. What was earned stays, up to the new burst, and so does debt."""
        available = min(self.available(now), burst)
        self.rate, self.burst = rate, burst
        self._arrival = now
        self.take(burst - available, now)
