"""Reads histograms of durations."""

from __future__ import annotations

import math

from gateway.telemetry.latency import BOUNDS, Histogram


def durations(histogram: Histogram) -> dict[float, int]:
    """Return the numbers of durations by the upper bounds of their buckets, without empty ones."""
    bounds = (*BOUNDS, math.inf)
    return {bound: number for bound, number in zip(bounds, histogram.counts, strict=True) if number}
