"""The parts of latency histograms that belong to one interval. Histograms grow for ever.

Histograms of intervals, gateways and tenants can be added up, bucket by bucket; quantiles cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gateway.telemetry.latency import Histogram, ListenerLatencies

WHATS = ("send", "own", "lookup", "first_message")


class Counted(NamedTuple):
    """Durations of one kind in an interval. `tenant`: None for connecting, which has none yet.
    `what`: the kind, `connect` or one of `WHATS`. `counts`: by bucket; the last one counts
    durations above all bounds. `seconds`: the sum of all durations."""

    listener: str
    tenant: str | None
    what: str
    counts: list[int]
    seconds: float


class Latencies:
    """Remembers the last reported counts of each histogram. `sources`: histograms by listener."""

    def __init__(self, sources: Mapping[str, ListenerLatencies]) -> None:
        self._sources = sources
        self._reported: dict[tuple[str, str | None, str], tuple[list[int], float]] = {}

    def take(self) -> Iterator[Sequence[Counted]]:
        """Yield the durations since the last call, of histograms that have some: first those of a
        listener, then of each of its tenants. A sequence may be empty."""
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
