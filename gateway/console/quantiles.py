"""Quantiles of durations that are counted by bucket."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.telemetry.latency import BOUNDS


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return the duration in seconds that `share` of all durations do not exceed, such as the
    median for 0.5; None if there are no durations. `counts`: number of durations by bucket of
    `BOUNDS`.

    Durations are taken as spread evenly in their bucket. For durations above the last bound, that
    bound is returned.
    """
    total = sum(counts)
    if not total:
        return None
    wanted, below, low = share * total, 0, 0.0
    for count, high in zip(counts, BOUNDS, strict=False):
        if count and below + count >= wanted:
            return low + (high - low) * max(0.0, wanted - below) / count
        below, low = below + count, high
    return BOUNDS[-1]


def since(now: Sequence[int], before: Sequence[int] | None) -> list[int]:
    """Return how many durations were counted between two readings, by bucket. The later reading,
    `now`, lacks the counts of a process that ended meanwhile; a bucket that has decreased counts as
    0."""
    if before is None:
        return list(now)
    return [max(0, new - old) for new, old in zip(now, before, strict=True)]
