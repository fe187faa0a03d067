"""The counts that histograms of latencies have gained in one interval. The histograms themselves
count from the start of the process.

Counts of histograms can be added up, bucket by bucket, over intervals, gateways and tenants.
Quantiles cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gateway.telemetry.latency import Histogram, ListenerLatencies

WHATS = ("send", "own", "lookup", "first_message")


class Counted(NamedTuple):
    """Durations of one kind in an interval. `tenant`: None for the durations of connecting, which
    have no tenant yet. `what`: the kind, `connect` or one of `WHATS`. `counts`: the number of
    durations in each bucket; the last bucket has those above all bounds. `seconds`: the sum of all
    durations."""

    listener: str
    tenant: str | None
    what: str
    counts: list[int]
    seconds: float


class Latencies:
    """Remembers which counts of each histogram were reported last. `sources`: histograms by
    listener."""

    def __init__(self, sources: Mapping[str, ListenerLatencies]) -> None:
        self._sources = sources
        self._reported: dict[tuple[str, str | None, str], tuple[list[int], float]] = {}

    def take(self) -> Iterator[Sequence[Counted]]:
        """Yield the durations that were counted since the last call. The first
        sequence of a listener has its own durations; then one follows for each of its tenants.
        Histograms without new durations are left out, so a sequence may be empty."""
        for listener, latencies in self._sources.items():
            yield tuple(self._new(listener, None, "connect", latencies.connect))
            for tenant, histograms in tuple(latencies.tenants.items()):
                yield [
                    counted
                    for what in WHATS
                    for counted in self._new(listener, tenant, what, getattr(histograms, what))
                ]

    def _new(
        self, listener: str, tenant: str | None, what: str, histogram: Histogram
    ) -> Iterator[Counted]:
        key = listener, tenant, what
        counts, seconds = list(histogram.counts), histogram.seconds
        before, seconds_before = self._reported.get(key, ([0] * len(counts), 0.0))
        if counts == before:
            return
        self._reported[key] = counts, seconds
        added = [now - old for now, old in zip(counts, before, strict=True)]
        yield Counted(listener, tenant, what, added, seconds - seconds_before)
