"""How long clients wait: histograms in the buckets of the gateway, around a median."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from gateway.telemetry.latency import BOUNDS

if TYPE_CHECKING:
    from random import Random

    from gateway.usage.records import What

MEDIANS: dict[What, tuple[float, float]] = {
    "send": (0.004, 0.6),
    "own": (0.00008, 0.5),
    "lookup": (0.003, 0.6),
    "connect": (0.006, 0.7),
    "first_message": (0.03, 0.9),
}
"""In seconds, and the standard deviation of the logarithm: as on one local network."""

_JITTER = (0.8, 0.9, 1.0, 1.0, 1.1, 1.25)
"""Factors of medians, so that no two intervals are alike. They are few, for the cache."""

_MIDDLES = (
    BOUNDS[0] / 2,
    *(math.sqrt(low * high) for low, high in pairwise(BOUNDS)),
    BOUNDS[-1] * 1.2,
)
"""The duration that stands for all of a bucket."""


class Histogram(NamedTuple):
    """Durations by bucket, and the sum of all in microseconds."""

    counts: list[int]
    sum_us: int


@lru_cache(maxsize=512)
def _chances(median: float, deviation: float) -> tuple[tuple[int, float], ...]:
    """Return the buckets that are likely enough to matter, each with its share."""
    below = [
        0.5 * (1 + math.erf(math.log(it / median) / (deviation * math.sqrt(2)))) for it in BOUNDS
    ]
    edges = [0.0, *below, 1.0]
    shares = [high - low for low, high in pairwise(edges)]
    return tuple((at, share) for at, share in enumerate(shares) if share > 1e-6)


def histogram(rng: Random, what: What, number: int, slower: float = 1.0) -> Histogram:
    """Return about `number` durations. `slower`: factor of the usual median."""
    median, deviation = MEDIANS[what]
    counts = [0] * (len(BOUNDS) + 1)
    roll, seconds = rng.random, 0.0
    for at, share in _chances(median * slower * rng.choice(_JITTER), deviation):
        counts[at] = came = int(number * share + roll())
        seconds += came * _MIDDLES[at]
    return Histogram(counts, round(seconds * 1e6))
