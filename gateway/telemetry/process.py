"""All metrics except those per topic: connections, lookups, brokers, rules, workers, the process.

Importing this module costs 3 MB and up to 30 ms for `prometheus_client`: import it only with an
admin listener.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gateway.telemetry.figures import (
        BrokerFailures,
        BrokerHealth,
        ClusterFigures,
        CrewFigures,
        ListenerFigures,
        LogFigures,
        PlaneFigures,
        ReloadFigures,
        RuleFigures,
        StoreFigures,
    )


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the numbers; listeners and clusters by name. Unused features are None."""

    version: str
    listeners: Mapping[str, ListenerFigures]
    clusters: Mapping[str, ClusterFigures]
    plane: Callable[[], PlaneFigures]
    brokers: Callable[[], Iterable[BrokerHealth]]
    failures: Callable[[], Iterable[BrokerFailures]]
    rules: Callable[[], Iterable[RuleFigures]]
    log: LogFigures
    reloads: ReloadFigures | None = None
    store: StoreFigures | None = None


class _Metrics(Collector):
    """Metrics in a registry of their own, which no library adds others to."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """Return Prometheus text, in well under a millisecond for a handful of listeners."""
        return generate_latest(self._registry)


class ProcessMetrics(_Metrics):
    """The metrics of a process that serves clients."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        super().__init__()

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics."""
        yield from _connections(self._sources.listeners)
        yield from _lookups(self._sources.clusters)
        yield _brokers(self._sources.brokers())
        yield _failures(self._sources.failures())
        yield from _plane(self._sources.plane())
        yield from _rules(self._sources.rules())
        if self._sources.reloads is not None:
            yield from _reloads(self._sources.reloads)
        if self._sources.store is not None:
            yield from _store(self._sources.store)
        yield _dropped_lines(self._sources.log)
        yield _build(self._sources.version)


class CrewMetrics(_Metrics):
    """The metrics of the parent of workers: its own, and the number of workers."""

    def __init__(self, crew: Callable[[], CrewFigures], log: LogFigures) -> None:
        self._crew = crew
        self._log = log
        super().__init__()

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics."""
        figures = self._crew()
        yield GaugeMetricFamily(
            "gateway_workers", "Processes that serve clients.", value=figures.running
        )
        yield CounterMetricFamily(
            "gateway_worker_restarts", "Workers that replaced an ended one.", value=figures.restarts
        )
        yield _dropped_lines(self._log)


def _connections(listeners: Mapping[str, ListenerFigures]) -> Iterator[Metric]:
    now = GaugeMetricFamily(
        "gateway_connections", "Client connections right now.", labels=["listener", "state"]
    )
    accepted = CounterMetricFamily(
        "gateway_connections_accepted", "Connections accepted from clients.", labels=["listener"]
    )
    failures = CounterMetricFamily(
        "gateway_accept_failures", "Connections that could not be accepted.", labels=["listener"]
    )
    ended = CounterMetricFamily(
        "gateway_connections_ended",
        "Connections that ended, by reason.",
        labels=["listener", "reason"],
    )
    for listener, figures in listeners.items():
        now.add_metric([listener, "opening"], figures.opening)
        now.add_metric([listener, "open"], 0 if figures.stopped else figures.open)
        now.add_metric([listener, "draining"], figures.open if figures.stopped else 0)
        accepted.add_metric([listener], figures.accepted)
        failures.add_metric([listener], figures.accept_failures)
        for reason, number in figures.ended.items():
            ended.add_metric([listener, reason.value], number)
    yield from (now, accepted, failures, ended)


def _lookups(clusters: Mapping[str, ClusterFigures]) -> Iterator[Metric]:
    lookups = CounterMetricFamily(
        "gateway_lookups", "Topic lookups of clients, by outcome.", labels=["cluster", "outcome"]
    )
    redirects = CounterMetricFamily(
        "gateway_lookup_redirects", "Redirects that lookups followed.", labels=["cluster"]
    )
    migrations = CounterMetricFamily(
        "gateway_migrations",
        "Topics that migrated to another cluster.",
        labels=["cluster", "outcome"],
    )
    for cluster, figures in clusters.items():
        migrations.add_metric([cluster, "told"], figures.migrations)
        migrations.add_metric([cluster, "withheld"], figures.migrations_withheld)
        for outcome, number in figures.lookups.items():
            lookups.add_metric([cluster, outcome.value], number)
        redirects.add_metric([cluster], figures.redirects)
    yield from (lookups, redirects, migrations)


def _brokers(brokers: Iterable[BrokerHealth]) -> Metric:
    healthy = GaugeMetricFamily(
        "gateway_broker_healthy", "1 if a broker is healthy.", labels=["cluster", "broker"]
    )
    for cluster, broker, is_healthy in brokers:
        healthy.add_metric([cluster, broker], int(is_healthy))
    return healthy


def _failures(failures: Iterable[BrokerFailures]) -> Metric:
    family = CounterMetricFamily(
        "gateway_broker_failures", "Brokers not reached, by cause.", labels=["cluster", "cause"]
    )
    for cluster, cause, number in failures:
        family.add_metric([cluster, cause], number)
    return family


def _plane(figures: PlaneFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "gateway_buffered_bytes", "Bytes that wait in the gateway.", value=figures.buffered
    )
    yield GaugeMetricFamily(
        "gateway_collected_bytes",
        "Bytes of incomplete frames that must be held whole.",
        value=figures.collected,
    )
    yield GaugeMetricFamily(
        "gateway_remembered_bytes",
        "Bytes that connections, producers, consumers and unanswered lookups take.",
        value=figures.remembered,
    )
    yield GaugeMetricFamily(
        "gateway_held_bytes", "Bytes that wait for their limit.", value=figures.held
    )
    yield CounterMetricFamily(
        "gateway_producer_resets",
        "Producers closed because their messages had waited too long.",
        value=figures.resets,
    )
    yield CounterMetricFamily(
        "gateway_reactor_turns", "Turns of the data plane.", value=figures.turns
    )


def _rules(rules: Iterable[RuleFigures]) -> Iterator[Metric]:
    labels = ["rule", "limit", "mode"]
    limits = GaugeMetricFamily("gateway_rule_limits", "Limits that a rule has made.", labels=labels)
    waiting = GaugeMetricFamily(
        "gateway_rule_waiting",
        "Producers and requests that wait for a limit of a rule.",
        labels=labels,
    )
    waits = CounterMetricFamily("gateway_rule_waits", "Waits for a limit of a rule.", labels=labels)
    seconds = CounterMetricFamily(
        "gateway_rule_wait_seconds", "Seconds of all waits.", labels=labels
    )
    refused = CounterMetricFamily(
        "gateway_rule_refused", "Requests that were refused.", labels=labels
    )
    shadow = CounterMetricFamily(
        "gateway_rule_shadow_held",
        "Messages, bytes or requests that would have waited.",
        labels=["rule", "limit"],
    )
    for figures in rules:
        values = [figures.rule, figures.what, figures.mode]
        limits.add_metric(values, figures.limits)
        waiting.add_metric(values, figures.waiting)
        waits.add_metric(values, figures.waits)
        seconds.add_metric(values, figures.seconds)
        refused.add_metric(values, figures.refused)
        if figures.mode == "shadow":
            shadow.add_metric(values[:2], figures.held)
    yield from (limits, waiting, waits, seconds, refused, shadow)


def _reloads(figures: ReloadFigures) -> Iterator[Metric]:
    reloads = CounterMetricFamily(
        "gateway_rules_reloads", "Reloads of rules, by outcome.", labels=["outcome"]
    )
    reloads.add_metric(["loaded"], figures.loaded)
    reloads.add_metric(["refused"], figures.refused)
    yield reloads
    yield GaugeMetricFamily(
        "gateway_rules_generation", "Generation of the rules in force.", value=figures.generation
    )
    yield GaugeMetricFamily(
        "gateway_rules_last_reload_timestamp_seconds",
        "Time of the last successful load of rules.",
        value=figures.loaded_at,
    )


def _store(figures: StoreFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "gateway_store_up",
        "1 if the store answers, 0 if it is lost.",
        value=int(not figures.lost),
    )
    yield GaugeMetricFamily(
        "gateway_store_processes", "Processes that share limits.", value=figures.processes
    )
    yield CounterMetricFamily("gateway_store_calls", "Calls of the store.", value=figures.calls)
    yield CounterMetricFamily(
        "gateway_store_failures",
        "Calls of the store without a usable answer.",
        value=figures.failures,
    )
    yield CounterMetricFamily(
        "gateway_store_questions",
        "Limits requested from the store, several in one call.",
        value=figures.asked,
    )
    yield CounterMetricFamily(
        "gateway_store_refusals",
        "Requests that failed for a single limit.",
        value=figures.refused,
    )


def _dropped_lines(figures: LogFigures) -> Metric:
    return CounterMetricFamily(
        "gateway_log_lines_dropped",
        "Log lines that were dropped.",
        value=figures.dropped,
    )


def _build(version: str) -> Metric:
    python = ".".join(str(part) for part in sys.version_info[:3])
    build = InfoMetricFamily("gateway_build", "Versions of the gateway and of Python.")
    build.add_metric([], {"version": version, "python": python})
    return build
