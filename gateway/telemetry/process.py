"""All metrics except those per topic, tenant and principal: connections, lookups, brokers, rules,
workers, the process.

This module imports `prometheus_client`, which takes 3 MB and up to 30 ms, so import it only if
there is an admin listener.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, cast, get_origin, get_type_hints

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.registry import Collector

from gateway._pure import IMPLEMENTATION
from gateway.telemetry import exposition, families
from gateway.telemetry.families import Family, Kind
from gateway.telemetry.latency import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gateway.telemetry.denials import DeniedTenant
    from gateway.telemetry.figures import (
        AgentFigures,
        AuditFigures,
        BrokerFailures,
        BrokerHealth,
        ClusterFigures,
        CrewFigures,
        Denied,
        ExportFigures,
        IssuerFigures,
        ListenerFigures,
        LogFigures,
        OpeningFigures,
        PlaneFigures,
        ReloadFigures,
        RuleFigures,
        ShipperFigures,
        StoreFigures,
        StreamFigures,
        TlsFigures,
    )
    from gateway.telemetry.latency import Histogram, ListenerLatencies


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the numbers of the metrics come from. Mappings are by the name of the listener or
    cluster. None: the feature is not used."""

    version: str
    listeners: Mapping[str, ListenerFigures]
    clusters: Mapping[str, ClusterFigures]
    plane: Callable[[], PlaneFigures]
    brokers: Callable[[], Iterable[BrokerHealth]]
    failures: Callable[[], Iterable[BrokerFailures]]
    rules: Callable[[], Iterable[RuleFigures]]
    log: LogFigures
    openings: OpeningFigures
    latencies: Mapping[str, ListenerLatencies] = field(default_factory=dict)
    dials: Mapping[str, Histogram] = field(default_factory=dict)
    delays: Histogram | None = None
    audit: AuditFigures | None = None
    usage: Mapping[str, StreamFigures] | None = None
    shipper: ShipperFigures | None = None
    export: Mapping[str, ExportFigures] | None = None
    reloads: ReloadFigures | None = None
    store: StoreFigures | None = None
    tls: TlsFigures | None = None
    denied: Mapping[Denied, int] | None = None
    denied_tenants: Mapping[DeniedTenant, int] = field(default_factory=dict)
    issuers: Mapping[str, IssuerFigures] = field(default_factory=dict)
    agent: AgentFigures | None = None


class _Metrics(Collector):
    """Metrics in a registry of their own, to which no library adds others."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def chunks(self) -> Iterator[bytes]:
        """Yield all metrics as Prometheus text, in slices."""
        return exposition.written(self._registry.collect())


class ProcessMetrics(_Metrics):
    """The metrics of a process that serves clients."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        super().__init__()

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families with their current numbers, for `prometheus_client`."""
        yield from _connections(self._sources.listeners)
        yield from _lookups(self._sources.clusters)
        if self._sources.latencies:
            connects = {
                name: latencies.connect for name, latencies in self._sources.latencies.items()
            }
            yield _durations(families.CONNECT_SECONDS, connects)
            yield _durations(families.DIAL_SECONDS, self._sources.dials)
        if self._sources.delays is not None:
            yield _durations(families.LOOP_DELAY_SECONDS, {"": self._sources.delays})
        yield _brokers(self._sources.brokers())
        yield _failures(self._sources.failures())
        yield from _families({"": self._sources.plane()})
        yield from _rules(self._sources.rules())
        if self._sources.reloads is not None:
            yield from _reloads(self._sources.reloads)
        if self._sources.store is not None:
            yield from _store(self._sources.store)
        if self._sources.denied is not None:
            yield _denied(self._sources.denied)
            yield _denied_tenants(self._sources.denied_tenants)
        if self._sources.issuers:
            yield from _issuers(self._sources.issuers)
        if self._sources.agent is not None:
            yield from _agent(self._sources.agent)
        if self._sources.tls is not None:
            yield from _tls(self._sources.tls)
        yield from _families({"": self._sources.log})
        if self._sources.audit is not None:
            yield from _families({"": self._sources.audit})
        yield from _usage(self._sources)
        if self._sources.export:
            yield from _families(self._sources.export)
        yield from _families({"": self._sources.openings})
        yield _build(self._sources.version)


class CrewMetrics(_Metrics):
    """The metrics of the parent of workers: those of the parent process itself, and of the workers
    as a group. `shipper`: the figures of the process that sends the records of all workers."""

    def __init__(
        self,
        crew: Callable[[], CrewFigures],
        log: LogFigures,
        shipper: ShipperFigures | None = None,
    ) -> None:
        self._crew = crew
        self._log = log
        self._shipper = shipper
        super().__init__()

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families with their current numbers, for `prometheus_client`."""
        yield from _families({"": self._crew()})
        yield from _families({"": self._log})
        if self._shipper is not None:
            yield from _shipper(self._shipper)


_METRICS = {
    Kind.COUNTER: CounterMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.HISTOGRAM: HistogramMetricFamily,
    Kind.INFO: InfoMetricFamily,
}


class _Samples(Metric):
    """What the library's kinds of families have in common."""

    if TYPE_CHECKING:

        def add_metric(self, labels: Any, *values: Any) -> None: ...


def _metric(family: Family) -> _Samples:
    """Return the library's own kind of family, without samples."""
    labels = () if family.kind is Kind.INFO else family.labels
    return cast(_Samples, _METRICS[family.kind](family.name, family.text, labels=labels))


def _families(sources: Mapping[str, object]) -> Iterator[Metric]:
    """Yield the families that the fields of figures name. `sources`: by the value of their label,
    if they have one."""
    for attribute, family in _families_of(next(map(type, sources.values()))):
        metric = _metric(family)
        for name, figures in sources.items():
            metric.add_metric([name] if family.labels else [], getattr(figures, attribute))
        yield metric


@cache
def _families_of(kind: type) -> list[tuple[str, Family]]:
    """Return the fields of a class of figures that have a family, each with it."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        (name, hint.__metadata__[0])
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    ]


def _connections(listeners: Mapping[str, ListenerFigures]) -> Iterator[Metric]:
    now = _metric(families.CONNECTIONS)
    ended = _metric(families.ENDED)
    for listener, figures in listeners.items():
        now.add_metric([listener, "opening"], figures.opening)
        now.add_metric([listener, "open"], 0 if figures.stopped else figures.open)
        now.add_metric([listener, "draining"], figures.open if figures.stopped else 0)
        for reason, number in figures.ended.items():
            ended.add_metric([listener, reason.value], number)
    yield now
    yield from _families(listeners)
    yield ended
    yield from _clients(listeners)
    yield from _traffic(listeners)


def _clients(listeners: Mapping[str, ListenerFigures]) -> Iterator[Metric]:
    handshakes, clients = _metric(families.HANDSHAKES), _metric(families.CLIENTS)
    authentications = _metric(families.AUTHENTICATIONS)
    for listener, figures in listeners.items():
        for (version, resumed), number in figures.handshakes.items():
            handshakes.add_metric([listener, version, "yes" if resumed else "no"], number)
        for (method, accepted), number in figures.authentications.items():
            outcome = "accepted" if accepted else "refused"
            authentications.add_metric([listener, method, outcome], number)
        for library, number in figures.libraries.items():
            clients.add_metric([listener, library], number)
    yield from (handshakes, clients, authentications)


def _traffic(listeners: Mapping[str, ListenerFigures]) -> Iterator[Metric]:
    now, moved = _metric(families.BROKER_CONNECTIONS), _metric(families.BROKER_BYTES)
    for listener, figures in listeners.items():
        for broker, traffic in figures.brokers.items():
            now.add_metric([listener, broker], traffic.open)
            moved.add_metric([listener, broker, "to_broker"], traffic.to_broker.bytes)
            moved.add_metric([listener, broker, "to_client"], traffic.to_client.bytes)
    yield from (now, moved)


def _lookups(clusters: Mapping[str, ClusterFigures]) -> Iterator[Metric]:
    lookups = _metric(families.LOOKUPS)
    migrations = _metric(families.MIGRATIONS)
    errors = _metric(families.ANSWER_ERRORS)
    for cluster, figures in clusters.items():
        migrations.add_metric([cluster, "told"], figures.migrations)
        migrations.add_metric([cluster, "withheld"], figures.migrations_withheld)
        for outcome, number in figures.lookups.items():
            lookups.add_metric([cluster, outcome.value], number)
        for (request, code), number in figures.errors.items():
            errors.add_metric([cluster, request, str(code)], number)
    yield lookups
    if errors.samples:
        yield errors
    yield from _families(clusters)
    yield migrations


def _durations(family: Family, histograms: Mapping[str, Histogram]) -> Metric:
    """Return a family of histograms by the value of their label, if they have one."""
    metric = _metric(family)
    for name, histogram in histograms.items():
        metric.add_metric([name] if family.labels else [], *_buckets(histogram))
    return metric


def _buckets(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    """Return the cumulative counts by upper bound, and the sum of all durations."""
    bounds = [*map(str, BOUNDS), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True)), histogram.seconds


def _brokers(brokers: Iterable[BrokerHealth]) -> Metric:
    healthy = _metric(families.BROKER_HEALTHY)
    for cluster, broker, is_healthy in brokers:
        healthy.add_metric([cluster, broker], int(is_healthy))
    return healthy


def _failures(failures: Iterable[BrokerFailures]) -> Metric:
    family = _metric(families.BROKER_FAILURES)
    for cluster, cause, number in failures:
        family.add_metric([cluster, cause], number)
    return family


_OF_RULES: tuple[tuple[Family, Callable[[RuleFigures], float]], ...] = (
    (families.RULE_LIMITS, lambda rule: rule.limits),
    (families.RULE_WAITING, lambda rule: rule.waiting),
    (families.RULE_WAITS, lambda rule: rule.waits),
    (families.RULE_WAIT_SECONDS, lambda rule: rule.seconds),
    (families.RULE_REFUSED, lambda rule: rule.refused),
    (families.RULE_FILL, lambda rule: round(rule.fill, 4)),
)


def _rules(rules: Iterable[RuleFigures]) -> Iterator[Metric]:
    """Yield one family after the other: messages pass between them, and rules may be thousands."""
    known = tuple(rules)
    for family, value in _OF_RULES:
        metric = _metric(family)
        for rule in known:
            metric.add_metric([rule.rule, rule.what, rule.mode], value(rule))
        yield metric
    shadow = _metric(families.RULE_SHADOW_HELD)
    for rule in known:
        if rule.mode == "shadow":
            shadow.add_metric([rule.rule, rule.what], rule.held)
    yield shadow


def _reloads(figures: ReloadFigures) -> Iterator[Metric]:
    reloads = _metric(families.RULES_RELOADS)
    reloads.add_metric(["loaded"], figures.loaded)
    reloads.add_metric(["refused"], figures.refused)
    yield reloads
    yield from _families({"": figures})


def _usage(sources: Sources) -> Iterator[Metric]:
    if sources.usage:
        yield from _families(sources.usage)
    if sources.shipper is not None:
        yield from _shipper(sources.shipper)


def _shipper(figures: ShipperFigures) -> Iterator[Metric]:
    yield from _families(figures.streams)
    yield from _families({"": figures})


def _denied(denied: Mapping[Denied, int]) -> Metric:
    counted = _metric(families.ACCESS_DENIED)
    for denial, number in denied.items():
        counted.add_metric([denial.listener, denial.rule, denial.right, denial.mode], number)
    return counted


def _denied_tenants(denied: Mapping[DeniedTenant, int]) -> Metric:
    counted = _metric(families.TENANT_DENIED)
    for denial, number in denied.items():
        counted.add_metric(list(denial), number)
    return counted


def _agent(figures: AgentFigures) -> Iterator[Metric]:
    known = _metric(families.AGENT_KNOWN)
    known.add_metric([], figures.known)
    yield known
    answers = _metric(families.AGENT_ANSWERS)
    for outcome in ("allowed", "denied", "failed", "stated"):
        answers.add_metric([outcome], getattr(figures, outcome))
    yield answers


def _issuers(figures: Mapping[str, IssuerFigures]) -> Iterator[Metric]:
    keys = _metric(families.ISSUER_KEYS)
    fetches = _metric(families.ISSUER_FETCHES)
    for issuer, counts in figures.items():
        keys.add_metric([issuer], counts.keys)
        fetches.add_metric([issuer, "fetched"], counts.fetched)
        fetches.add_metric([issuer, "failed"], counts.failed)
    yield keys
    yield fetches


def _tls(figures: TlsFigures) -> Iterator[Metric]:
    reloads = _metric(families.TLS_RELOADS)
    reloads.add_metric(["loaded"], figures.loaded)
    reloads.add_metric(["refused"], figures.refused)
    yield reloads
    expiry = _metric(families.TLS_EXPIRY)
    for owner, expiries in figures.expiries.items():
        for expiring in expiries:
            expiry.add_metric([owner, expiring.kind, str(expiring.file)], expiring.ends)
    yield expiry


def _store(figures: StoreFigures) -> Iterator[Metric]:
    up = _metric(families.STORE_UP)
    up.add_metric([], int(not figures.lost))
    yield up
    yield from _families({"": figures})


def _build(version: str) -> Metric:
    python = ".".join(str(part) for part in sys.version_info[:3])
    build = _metric(families.BUILD)
    build.add_metric([], {"version": version, "python": python, "implementation": IMPLEMENTATION})
    return build
