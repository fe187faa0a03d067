"""A meter: the GCRA (generic cell rate algorithm) of ATM networks, a token bucket in one float.

The meter keeps one moment, the *theoretical arrival time*, at which the rate will have earned all
units that were taken so far. Taking n units moves this moment n/rate seconds ahead. If it is more
than burst/rate seconds ahead of now, the meter is in debt. No timer refills the meter, so an unused
meter costs nothing.
"""

from __future__ import annotations

WHOLE_UNIT = 0.999
"""Units that count as one whole unit: a rounded moment must not cost a message."""

_MARGIN = 1e-6
"""Seconds added to a promised moment, so that rounding never makes it too early."""


class Meter:
    """A GCRA meter. `rate`: units earned per second. `burst`: the most unused units that are saved
    up. Times are seconds of one monotonic clock."""

    __slots__ = ("_arrival", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        if not (rate > 0 and burst > 0):
            raise ValueError(f"a meter needs a rate and a burst above zero, not {rate} and {burst}")
        self.rate = rate
        self.burst = burst
        self._arrival = float("-inf")

    def available(self, now: float) -> float:
        """Return how many units may be taken now; a negative number means that the meter is in
        debt."""
        return self.burst - max(0.0, self._arrival - now) * self.rate

    def is_spent(self, now: float) -> bool:
        """Return whether less than one whole unit is left."""
        return self.available(now) < WHOLE_UNIT

    def take(self, units: float, now: float) -> None:
        """Take units from the meter. If more are taken than are available, the meter is in debt
        until all of it is earned."""
        self._arrival = max(self._arrival, now) + units / self.rate

    def give_back(self, units: float, now: float) -> None:
        """Give back units that were taken in advance and not used. The meter still saves up no more
        than `burst`."""
        self._arrival = max(self._arrival, now) - units / self.rate

    def ready_at(self, units: float, now: float) -> float:
        """Return the time at which `units` will be available if no others are taken before; `now`
        if they are available already."""
        missing = units - self.available(now)
        return now if missing <= 0 else now + missing / self.rate + _MARGIN

    def full_at(self, now: float) -> float:
        """Return the time at which the meter will have its whole burst again, as a new meter
        has."""
        return max(self._arrival, now)

    def change(self, rate: float, burst: float, now: float) -> None:
        """Change the rate and the burst. Saved units are kept, up to the new burst, and debt is
        kept too."""
        available = min(self.available(now), burst)
        self.rate, self.burst = rate, burst
        self._arrival = now
        self.take(burst - available, now)
