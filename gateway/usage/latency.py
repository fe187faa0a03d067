"""What the histograms of latencies counted in an interval: they grow for ever, records tell parts.

Histograms of intervals, gateways and tenants can be added up, bucket by bucket; quantiles cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gateway.telemetry.latency import Histogram, ListenerLatencies

WHATS = ("send", "own", "lookup", "first_message")


class Counted(NamedTuple):
    """Durations of one kind in an interval. `counts`: by bucket, the last of those above all
    bounds. `tenant`: None for connecting, which has none yet."""

    listener: str
    tenant: str | None
    what: str
    counts: list[int]
    seconds: float


class Latencies:
    """Remembers what was told of each histogram. `sources`: by listener."""

    def __init__(self, sources: Mapping[str, ListenerLatencies]) -> None:
        self._sources = sources
        self._told: dict[tuple[str, str | None, str], tuple[list[int], float]] = {}

    def take(self) -> Iterator[Sequence[Counted]]:
        """Yield what was counted since the last time, of each histogram that counted something:
        those of a listener, and then of each tenant, which may be none."""
        for listener, latencies in self._sources.items():
            yield tuple(self._new(listener, None, "connect", latencies.connect))
            for tenant, its in tuple(latencies.tenants.items()):
                yield [
                    counted
                    for what in WHATS
                    for counted in self._new(listener, tenant, what, getattr(its, what))
                ]

    def _new(
        self, listener: str, tenant: str | None, what: str, histogram: Histogram
    ) -> Iterator[Counted]:
        key = listener, tenant, what
        counts, seconds = list(histogram.counts), histogram.seconds
        before, seconds_before = self._told.get(key, ([0] * len(counts), 0.0))
        if counts == before:
            return
        self._told[key] = counts, seconds
        came = [now - old for now, old in zip(counts, before, strict=True)]
        yield Counted(listener, tenant, what, came, seconds - seconds_before)
