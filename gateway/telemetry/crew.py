"""Metrics of a parent of workers: of itself, and of how many there are.

Imported only with an admin listener, as `process` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gateway.telemetry.process import dropped_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.telemetry.figures import CrewFigures, LogFigures


class CrewMetrics:
    """A registry of its own."""

    def __init__(self, crew: Callable[[], CrewFigures], log: LogFigures) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Crew(crew, log))
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """Write Prometheus text."""
        return generate_latest(self._registry)


class _Crew(Collector):
    def __init__(self, crew: Callable[[], CrewFigures], log: LogFigures) -> None:
        self._crew = crew
        self._log = log

    def collect(self) -> Iterable[Metric]:
        figures = self._crew()
        yield GaugeMetricFamily(
            "gateway_workers", "Processes that serve clients.", value=figures.running
        )
        yield CounterMetricFamily(
            "gateway_worker_restarts",
            "Workers that were started in the place of one that had ended.",
            value=figures.restarts,
        )
        yield dropped_lines(self._log)
