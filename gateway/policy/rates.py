"""Rates and bursts as people write them: `100/s`, `10MB/s`, `6000/m`; `500ms`, `2000`, `1MB`.

A rate is read as units per second: `60/m` allows one message each second, not sixty at once at the
start of a minute. The burst is how many units may pass at once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gateway.config import units

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_RATE = re.compile(r"(\d+(?:\.\d+)?) ?/ ?([smh])", re.ASCII)
_BYTE_RATE = re.compile(r"(\d+(?:\.\d+)? ?[A-Za-z]+) ?/ ?([smh])", re.ASCII)

# Nobody can mean more, and an infinite rate cannot be computed with.
_HUGE = 1e18


class Burst(NamedTuple):
    """The burst of a rule: either seconds of its rate, or an amount of units."""

    seconds: float | None = None
    amount: float | None = None

    def of(self, rate: float) -> float:
        """Return the burst in units. `rate`: units per second. The result is at least one, because
        otherwise nothing would ever pass."""
        amount = rate * (self.seconds or 0.0) if self.amount is None else self.amount
        return max(1.0, amount)


def rate(value: object) -> float:
    """Return a rate, written as `100/s`, in units per second. Raises `ValueError` if it is
    malformed or out of range; see `config.units`."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("is not a rate; 100/s, 6000/m or 1/h")
    return _sensible(float(match[1]) / _SECONDS[match[2]])


def byte_rate(value: object) -> float:
    """Return a rate, written as `10MB/s`, in bytes per second. Raises `ValueError` if it is
    malformed or out of range; see `config.units`."""
    match = _BYTE_RATE.fullmatch(value) if isinstance(value, str) else None
    try:
        size = units.size(match[1]) if match else None
    except (ValueError, OverflowError):
        size = None
    if match is None or size is None:
        raise ValueError("is not a rate of bytes; 10MB/s, 64KiB/s or 1GB/h")
    return _sensible(size / _SECONDS[match[2]])


def number(value: object) -> int:
    """Return the value of a concurrency limit in a rule: how many may be open at the same time.
    Raises `ValueError` if it is malformed or out of range; see `config.units`."""
    return int(_sensible(units.whole(value)))


def _sensible(amount: float) -> float:
    if 0 < amount < _HUGE:
        return amount
    raise ValueError("cannot be a limit; more than 0, and less than 10^18")


def burst(value: object) -> Burst:
    """Return a burst, written as `500ms`, `2000` or `1MB`. Raises `ValueError` if it is malformed
    or out of range; see `config.units`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Burst(amount=_sensible(value))
    for read, field in ((units.seconds, "seconds"), (units.size, "amount")):
        try:
            return Burst(**{field: min(_HUGE, read(value))})
        except (ValueError, OverflowError):
            continue
    raise ValueError("is not a burst; a time of the rate (500ms), or an amount (2000, 1MB)")
