"""Decides which limit suits what was seen. No Spark, no clock.

A limit is recommended so that nobody who behaves as before notices it: above the usual rate by a
headroom, and above whatever rate was seen while frames waited, because demand was higher then than
what passed. It changes only if it would change by much, so that a file of rules is not rewritten
each day.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum


class What(StrEnum):
    """What is limited, as rules name it."""

    PUBLISH_MESSAGES = "publish.messages"
    PUBLISH_BYTES = "publish.bytes"
    DISPATCH_MESSAGES = "dispatch.messages"
    DISPATCH_BYTES = "dispatch.bytes"


@dataclass(frozen=True, slots=True)
class Policy:
    """How limits are chosen. Rates are per second.

    `quantile`: of the rates of all intervals with traffic. `headroom`: a limit is this many times
    what was seen. `floors`: the least limit of messages and of bytes: below it a limit costs more
    trouble than it saves. `least_days`: with traffic, before anything is recommended. `hysteresis`:
    a limit is kept unless the new one differs by this part. `valid_days`: for which it is good.
    """

    quantile: float = 0.99
    headroom: float = 1.5
    floors: tuple[float, float] = (100.0, 100_000.0)
    ceilings: tuple[float, float] = (1e9, 1e12)
    least_days: int = 3
    hysteresis: float = 0.2
    valid_days: int = 30


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a tenant, in rates per second. `days`, `intervals`: with traffic. `usual`:
    the quantile; `most`: the highest of an interval. `peak`: the most in one second. `held`: the
    highest rate of an interval in which frames waited; 0 if none did."""

    tenant: str
    what: What
    days: int
    intervals: int
    usual: float
    most: float
    peak: float
    held: float


@dataclass(frozen=True, slots=True)
class Limit:
    """A recommended limit: per second, and what may pass at once, in messages or bytes."""

    seen: Seen
    rate: int
    burst: int


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why there is no recommendation."""

    seen: Seen
    reason: str


_PLAIN = re.compile(r"[A-Za-z0-9_=:.-]+").fullmatch
"""Matches names that rules take as they are. Pulsar accepts no others; a pattern, or a reference to
a variable, would make a rule for somebody else."""


def decide(seen: Seen, policy: Policy, current: int | None = None) -> Limit | Undecided:
    """Return the limit for what was seen, or why there is none. `current`: the rate that was
    recommended before."""
    if not _PLAIN(seen.tenant):
        return Undecided(seen, "has a name that rules would read as a pattern")
    if seen.days < policy.least_days:
        days = f"{seen.days} of {policy.least_days} days"
        return Undecided(seen, f"had traffic on {days}")
    floor, ceiling = (
        of[seen.what in {What.PUBLISH_BYTES, What.DISPATCH_BYTES}]
        for of in (policy.floors, policy.ceilings)
    )
    # At the quantile some intervals are above it; they pass by the burst, or wait a little.
    wanted = max(seen.usual, seen.held) * policy.headroom
    rate = rounded(min(max(wanted, floor), ceiling))
    if current is not None and abs(rate - current) <= policy.hysteresis * current:
        # What was held must pass, however small the change is.
        rate = max(current, rounded(seen.held * policy.headroom) if seen.held > current else 0)
    burst = rounded(max(seen.peak * policy.headroom - rate, rate / 10, 1.0))
    return Limit(seen, rate, burst)


def rounded(value: float) -> int:
    """Return a number that people read, not below `value`: two digits, and zeros."""
    if value <= 10:
        return math.ceil(value)
    unit = int(10 ** (math.floor(math.log10(value)) - 1))
    return math.ceil(value / unit) * unit
