"""The composition root: connects the parts of all packages, and runs them.

The nesting of nurseries is the order of shutdown, inside out: listeners stop first, the plane and
its jobs continue for the grace period, and the admin listener answers until the end.
"""

from __future__ import annotations

import errno
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import structlog
import trio

from gateway import __version__, assembly
from gateway.brokers.health import Brokers, Timing
from gateway.brokers.learned import LearnedHosts
from gateway.brokers.targets import TargetList
from gateway.config import model
from gateway.config.show import shown
from gateway.console.accounts import OpenAccounts
from gateway.control.operating import Operating
from gateway.control.services import ClusterParts, ListenerServices
from gateway.control.slots import Slots
from gateway.control.turns import HashTurns
from gateway.errors import ConfigurationError
from gateway.front.connection import Connection
from gateway.front.drain import drain
from gateway.front.jobs import Jobs
from gateway.front.moving import Moving
from gateway.front.server import Server, ServerSettings
from gateway.front.tracing import Tracing
from gateway.listening.openings import Openings
from gateway.listening.proxied import TrustedProxies
from gateway.listening.readiness import Readiness
from gateway.plane.reactor import Reactor
from gateway.policy.accounts import AccountBook, Watcher
from gateway.policy.principals import PrincipalBook
from gateway.protocols import PLUGINS
from gateway.system import machine
from gateway.system.delays import measure_delays
from gateway.system.interpreter import begin_collections, keep_freed_memory
from gateway.system.manager import NOBODY, Manager, Sockets
from gateway.system.signals import AT_ONCE, STOP, received
from gateway.telemetry import log
from gateway.telemetry.denials import Denials
from gateway.telemetry.figures import (
    BrokerFailures,
    BrokerHealth,
    ClusterFigures,
    ListenerFigures,
    LogFigures,
    OpeningFigures,
    PlaneFigures,
)
from gateway.telemetry.latency import Histogram, ListenerLatencies, SlowSends
from gateway.telemetry.spans import Span
from gateway.telemetry.witness import Witnesses
from gateway.tls.stream import Shared
from gateway.wire.budget import Budget
from gateway.wire.contract import Denial, EndReason, Entry
from gateway.wire.plugin import EntrySettings, Mode
from gateway.wire.proxy_header import LOCAL_HEADER

if TYPE_CHECKING:
    from gateway.assembly import Inherited
    from gateway.console.asking import Answers
    from gateway.console.facts import ConnectionFacts, Draining
    from gateway.console.serving import ConsoleSettings
    from gateway.fleet.store import Store
    from gateway.otlp.export import Export
    from gateway.telemetry.witness import Witness
    from gateway.tls.sides import Side
    from gateway.usage.shipping import Shipping

Status = trio.TaskStatus[None]

VERSION = f"broker-gateway {__version__}"
"""The `proxy_version` that brokers get."""

MINUTE = 60.0

MARGIN = 5.0
"""Seconds beyond the grace period in which a process ends, or is killed."""

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
_DESCRIPTORS = "cannot start: too many open files; raise the limit, for example: ulimit -n 21000"
INFO_EVENTS = frozenset(
    {
        *("broker_up", "name_resolved", "issuer_keys_fetched"),
        *("own_token_back", "policy_agent_back"),
    }
)
"""The log has these events at level info; whatever else parts report is a warning."""


def check(path: Path) -> str:
    """Check a configuration file; return the text that `gateway check` prints if the file is
    correct.

    This does all that `run` does before it listens, such as reading key files, and raises what
    `run` raises.
    """
    from gateway.config.load import check as check_file
    from gateway.config.load import load

    line = check_file(path)
    log.configure(log.Style(level="error"))  # errors are raised, so warnings need not be logged
    configuration = load(path)
    export = assembly.make_export(configuration)
    Application(configuration, export=export)
    if export is not None:
        export.close()
    return line


def run(configuration: model.Configuration, *, trace: bool = False) -> int:
    """Run the gateway until a signal stops it. Return the exit status.

    Raises `ConfigurationError` if the configuration cannot be put in force.
    """
    export = assembly.make_export(configuration)
    log_of_all = configured_log(configuration, trace=trace, export=export)
    with log_of_all as lines, configuration_errors_unwrapped():
        manager = Manager.of(os.environ, os.getpid())
        application = Application(
            configuration, trace=trace, lines=lines, export=export, manager=manager
        )
        trio.run(application.serve)
    return 0


@contextmanager
def configured_log(
    configuration: model.Configuration,
    *,
    trace: bool,
    export: Export | None = None,
    **always: object,
) -> Iterator[LogFigures]:
    """Within the context, write the log as configured, from a thread of its own. `always`: fields
    of every line. `export`: gets each line too.

    On exit `export` is closed, and lines that are still queued are written, for at most a second.
    """
    settings = configuration.log
    # Traces have level info, and are wanted whatever the configured level is.
    level = "info" if trace and settings.level != "debug" else settings.level
    style = log.Style(
        settings.format,
        level,
        settings.burst,
        settings.longest_text,
        settings.principals,
        always,
    )
    also = None if export is None else export.lines
    queue = log.configure_queued(style, lines=settings.queue_lines, size=settings.queue, also=also)
    before, sys.unraisablehook = sys.unraisablehook, log.log_ignored
    try:
        yield queue.figures
    finally:
        sys.unraisablehook = before
        if export is not None:
            export.close()
        queue.close()


@contextmanager
def configuration_errors_unwrapped() -> Iterator[None]:
    """Within the context, turn an error that only an operator can correct into a plain
    `ConfigurationError`, also if trio has wrapped the error in groups."""
    try:
        yield
    except (ExceptionGroup, OSError) as failures:
        error: BaseException = failures
        # Nested nurseries wrap a failure in groups of one.
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if isinstance(error, ConfigurationError):
            raise error from None
        if isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR:
            raise ConfigurationError(_DESCRIPTORS) from None
        raise


@dataclass(frozen=True, slots=True)
class _Cluster:
    brokers: Brokers
    parts: ClusterParts


def _witness_of(*witnesses: Witness | None) -> Witness | None:
    """Return one witness that passes events on to each of these; None if all are None."""
    present = [witness for witness in witnesses if witness is not None]
    return Witnesses(present) if present else None


def _new_generation() -> int:
    """Return the generation of the aliases that clients get when this gateway stops. It differs
    between gateways: a client that another gateway sent here connected by such an alias."""
    return secrets.randbelow(2**32 - 1) + 1


def _connection_ids(inherited: Inherited | None) -> count[int]:
    """Return numbers of connections, each of which is one worker's alone."""
    return count(1) if inherited is None else count(inherited.worker, inherited.workers)


class _Exposition(Protocol):
    def chunks(self) -> Iterator[bytes]: ...


def _in_turn(*expositions: _Exposition) -> Callable[[], Iterator[bytes]]:
    """Return a function that writes the expositions one after another."""
    return lambda: chain.from_iterable(exposition.chunks() for exposition in expositions)


class Application:
    """All parts of one process, made from the configuration and connected.

    `store`: shares limits with other processes. `inherited`: parts that a worker gets from its
    parent. `lines`: counters of the log. `export`: gets spans. `manager`: the service manager that
    started the process, which may pass listening sockets.
    """

    def __init__(
        self,
        configuration: model.Configuration,
        *,
        trace: bool = False,
        store: Store | None = None,
        inherited: Inherited | None = None,
        lines: LogFigures | None = None,
        export: Export | None = None,
        manager: Manager = NOBODY,
    ) -> None:
        self._configuration = configuration
        self._manager, self._inherited = manager, inherited
        self._lines = LogFigures() if lines is None else lines
        self._export = export
        self._spans = None if export is None else export.span
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._jobs = Jobs()
        self._reactor = Reactor(self._jobs, assembly.plane_settings(configuration))
        self._moving = Moving(self._reactor)
        self._jobs.reactor = self._reactor
        self._needs = assembly.make_needs(self._log_event, inherited)
        self._turns = HashTurns(time.monotonic)
        self._readiness, self._displaced = Readiness(), OpeningFigures()
        self._openings = Openings(configuration.limits.unauthenticated, self._displaced)
        self._budget = Budget(configuration.limits.all_remembered)
        self._audit = assembly.make_audit(configuration, inherited)
        self._recording = assembly.make_recording(configuration, inherited)
        self._witness = _witness_of(self._audit, self._recording)
        self._denials = Denials()
        self._principals = {name: PrincipalBook() for name in configuration.clusters}
        self._open_accounts = OpenAccounts() if configuration.console is not None else None
        denial_witness = _witness_of(self._denials, self._witness)
        self._limiting = assembly.make_rate_limiting(
            configuration, self._reactor, store, self._needs, denial_witness
        )
        self._shared = Shared()
        self._sides: dict[str, Side] = {}
        self._clusters = {
            name: self._cluster(name, cluster) for name, cluster in configuration.clusters.items()
        }
        self._shipping = None if inherited else self._make_shipping()
        self._dials = {name: Histogram() for name in configuration.clusters}
        self._delays = Histogram()
        self._services: list[ListenerServices] = []
        listeners = configuration.listeners
        self._listeners = {listener.name: ListenerFigures() for listener in listeners}
        self._slow = SlowSends()
        self._latencies = self._make_latencies()
        ids = _connection_ids(inherited)
        self._tracings = {
            listener.name: Tracing(listener.trace, everything=trace) for listener in listeners
        }
        self._servers = [self._server(listener, ids) for listener in listeners]
        self._console = self._console_settings()
        self._renewal = assembly.make_renewal(self._sides)
        self._started = self._draining = False
        self._drained_from = 0  # open connections when the drain began
        self._started_at = time.time()
        self._generation = _new_generation()

    # -- construction ------------------------------------------------------------------------

    @property
    def _is_read(self) -> bool:
        """Return whether anybody reads figures that cost something: a worker's are its parent's."""
        configuration = self._configuration
        readers = (
            configuration.admin,
            configuration.console,
            configuration.usage,
            self._export,
            self._inherited,
        )
        return any(reader is not None for reader in readers)

    def _make_shipping(self) -> Shipping | None:
        return assembly.make_shipping(
            self._configuration, lambda name: self._clusters[name].parts.credential
        )

    def _make_latencies(self) -> dict[str, ListenerLatencies]:
        """Return histograms by listener, if anybody reads them."""
        if not self._is_read:
            return {}
        latencies = {name: ListenerLatencies(self._slow) for name in self._listeners}
        self._denials.follow(latencies, self._books())
        if self._recording is not None:
            self._recording.time(latencies)
        return latencies

    def _books(self) -> dict[str, AccountBook]:
        """Return the accounts by cluster."""
        return {name: cluster.parts.accounts for name, cluster in self._clusters.items()}

    def _console_settings(self) -> ConsoleSettings | None:
        """Return how to serve the console, if this process does: a worker's is its parent's."""
        console = self._configuration.console
        if console is None or self._inherited is not None:
            return None
        settings = assembly.console_settings(console, self._shared)
        if settings.tls is not None:
            self._sides["console"] = settings.tls
        return settings

    def _watchers(self, cluster: str) -> Iterator[Watcher]:
        """Yield the watchers of a cluster's accounts."""
        if self._is_read and self._configuration.log.principals == "plain":
            yield self._principals[cluster]
        if self._recording is not None:
            yield self._recording.meter
        if self._open_accounts is not None:
            yield self._open_accounts

    def _log_event(self, event: str, **values: object) -> None:
        log_at = self._log.info if event in INFO_EVENTS else self._log.warning
        log_at(event, **values)

    def _cluster(self, name: str, cluster: model.Cluster) -> _Cluster:
        log_event = partial(self._log_event, cluster=name)
        targets = TargetList.of(cluster.brokers, cluster.targets)
        protocol = PLUGINS[self._configuration.protocol_of(name)]
        learned = LearnedHosts(protocol, targets=targets.filter_listed)
        deadlines = self._configuration.deadlines
        timing = Timing(dial_timeout=deadlines.dial, attempt_timeout=min(3.0, deadlines.dial))
        buffer = self._configuration.data_plane.socket_buffer
        tls = assembly.make_client_side(cluster, self._shared)
        if tls is not None:
            self._sides[f"cluster {name}"] = tls
        brokers = Brokers(
            name,
            cluster.brokers,
            targets,
            learned,
            timing,
            tls=tls,
            socket_buffer=buffer,
            header=b"" if cluster.proxy_protocol is None else LOCAL_HEADER,
            inside_tls=cluster.header_is_inside_tls,
            log=log_event,
        )
        secret = self._inherited.seals.get(name) if self._inherited else None
        parts = ClusterParts(
            name=name,
            names=assembly.make_names(name, cluster, secret),
            learned=learned,
            credential=assembly.make_credential(cluster.credential, self._needs, log_event),
            accounts=AccountBook(
                self._configuration.metrics.topics,
                watchers=self._watchers(name),
                idle_kept=self._configuration.metrics.idle,
            ),
            figures=ClusterFigures(),
            migrations={broker: to.gateway for to in cluster.migrations for broker in to.brokers},
        )
        return _Cluster(brokers, parts)

    def _server(self, listener: model.Listener, ids: count[int]) -> Server:
        cluster = self._clusters[listener.cluster]
        limits, deadlines = self._configuration.limits, self._configuration.deadlines
        settings = ServerSettings(
            name=listener.name,
            binds=listener.binds,
            handshake=deadlines.handshake,
            handshake_frame=limits.handshake_frame,
            connections=limits.connections,
            socket_buffer=self._configuration.data_plane.socket_buffer,
            shared=self._inherited is not None,
            connects=listener.each_address.connects,
            age=listener.connection_age,
        )
        tls = assembly.make_server_side(listener, self._shared)
        if tls is not None:
            self._sides[f"listener {listener.name}"] = tls
        proxies = listener.proxy_protocol
        latencies = self._latencies.get(listener.name)
        return Server(
            settings,
            self._entry(listener, cluster),
            cluster.brokers,
            self._reactor,
            self._readiness,
            self._openings,
            self._moving,
            self._listeners[listener.name],
            self._tracings[listener.name],
            ids,
            tls=tls,
            witness=self._witness,
            proxies=TrustedProxies(() if proxies is None else proxies.from_),
            connects=None if latencies is None else latencies.connect,
            dials=None if latencies is None else self._dials[listener.cluster],
            spans=self._spans,
            introduction=assembly.make_introduction(
                listener, self._configuration.clusters[listener.cluster]
            ),
        )

    def _entry(self, listener: model.Listener, cluster: _Cluster) -> Entry:
        verifiers = assembly.make_verifiers(listener.identity, self._needs)
        services = ListenerServices(
            cluster.parts,
            verifiers,
            self._log.warning,
            name=listener.name,
            naming=assembly.make_naming(listener.identity),
            limits=None if self._limiting is None else self._limiting.shaper,
            access=None if self._limiting is None else self._limiting.access,
            turns=self._turns,
            latencies=self._latencies.get(listener.name),
            figures=self._listeners[listener.name],
            spans=self._spans,
            slots=Slots(listener.each_address.connections, listener.each_principal.connections),
            endpoints=assembly.make_endpoints(listener),
            age=listener.connection_age,
        )
        self._services.append(services)
        behind = self._configuration.clusters[listener.cluster]
        return PLUGINS[listener.protocol].enter(
            EntrySettings(
                services=services,
                mode=Mode(listener.identity.mode),
                proxies=frozenset(listener.identity.trusted_proxies),
                chained=behind.brokers_are == "gateways",
                limited=self._limiting is not None,
                unknown_pass=listener.unknown == "pass",
                checksums=listener.checksums == "verify",
                hides_client_metrics=listener.client_metrics == "hide",
                tls=listener.tls is not None,
                brokers_tls=behind.has_tls,
                shows_passwords=assembly.shows_passwords(behind.credential),
                version=VERSION,
                bounds=assembly.frame_bounds(self._configuration.limits),
                budget=self._budget,
            )
        )

    # -- serving -----------------------------------------------------------------------------

    async def serve(self, *, task_status: Status = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until SIGTERM or SIGINT. The task has started once all listeners listen."""
        serve = partial(self._serve, task_status)
        await (serve() if self._shipping is None else self._shipping.during(serve))
        self._log.info("stopped")

    async def _serve(self, task_status: Status) -> None:
        try:
            async with (
                received(*STOP, *([AT_ONCE] if self._inherited else [])) as signals,
                trio.open_nursery() as outer,
            ):
                await self._start_admin(outer)
                await self._start_console(outer)
                await self._run_plane(signals, task_status)
                outer.cancel_scope.cancel()
        finally:
            if self._recording is not None:
                self._recording.finish()
            if self._audit is not None:
                self._audit.close()

    async def _start_admin(self, nursery: trio.Nursery) -> None:
        admin = self._configuration.admin
        if admin is None:
            return
        # Imported only with an admin listener, because that takes 6 MB and 40 ms.
        from gateway.admin.routes import routes
        from gateway.admin.server import Bounds, serve
        from gateway.telemetry.exemplars import Exemplars

        exemplars = Exemplars(self._latencies, self._slow)
        table = routes(self.expositions(), lambda: self._started, self.unready, exemplars.by_sample)
        clients = self._configuration.limits.connections * len(self._listeners)
        bounds = Bounds(assembly.admin_connections(admin.connections, clients), admin.scrapes)
        arrivals = assembly.make_arrivals(admin)
        client_of = None if arrivals is None else arrivals.client
        start = partial(serve, admin.bind, table, bounds=bounds, client_of=client_of)
        addresses = await nursery.start(start)
        self._log.info("admin_listening", addresses=[str(address) for address in addresses])

    async def _start_console(self, nursery: trio.Nursery) -> None:
        if self._console is None:
            return
        from gateway.console.asking import alone
        from gateway.console.running import Operated, run_console
        from gateway.console.views import About

        operated = Operated(
            alone(self.console_answers()),
            About(__version__, self._started_at, partial(shown, self._configuration)),
            partial(signal.raise_signal, signal.SIGTERM),
            None if self._limiting is None else self._limiting.reloader.ask,
        )
        await nursery.start(run_console, self._console, operated, self._openings)

    async def _run_plane(self, signals: AsyncIterator[int], task_status: Status) -> None:
        sharing = None if self._limiting is None else self._limiting.sharing
        async with trio.open_nursery() as plane:
            self._jobs.nursery = plane
            plane.start_soon(self._reactor.run)
            plane.start_soon(self._readiness.run)
            plane.start_soon(self._moving.run)
            if self._latencies:
                plane.start_soon(measure_delays, self._delays.add)
            for cluster in self._clusters.values():
                plane.start_soon(cluster.brokers.watch)
            if sharing is not None:
                plane.start_soon(sharing.run)
            for task in self._needs.tasks:
                plane.start_soon(task)
            if self._renewal is not None:
                plane.start_soon(self._renewal.run)
            if self._manager.is_watching:
                plane.start_soon(self._manager.keep_alive)
            if self._recording is not None:
                plane.start_soon(self._recording.run)
            if self._configuration.metrics.idle is not None:
                plane.start_soon(self._age_topics, self._configuration.metrics.idle)
            async with trio.open_nursery() as front:
                if self._limiting is not None:
                    await front.start(self._limiting.reloader.run)
                self._listen(front)
                self._started = True
                task_status.started()
                self._manager.ready()
                begin_collections()
                keep_freed_memory()
                await self._drain(signals, await self._stop_signal(signals))
                front.cancel_scope.cancel()
            plane.cancel_scope.cancel()

    async def _age_topics(self, idle: float) -> None:
        """Fold topics that are idle for too long."""
        while True:
            for cluster in self._clusters.values():
                for _ in cluster.parts.accounts.age(time.monotonic()):
                    await trio.lowlevel.checkpoint()
            await trio.sleep(min(MINUTE, idle / 10))

    def _listen(self, nursery: trio.Nursery) -> None:
        passed = self._passed_sockets()
        for server in self._servers:
            sockets = passed.get(server.settings.name, ())
            addresses = [str(address) for address in server.listen(sockets)]
            nursery.start_soon(server.serve)
            self._log.info("listening", listener=server.settings.name, addresses=addresses)

    def _passed_sockets(self) -> Sockets:
        """Return the sockets that listeners need not bind."""
        if self._inherited is not None:
            return self._inherited.sockets
        return self._manager.sockets(listener.name for listener in self._configuration.listeners)

    async def _stop_signal(self, signals: AsyncIterator[int]) -> int:
        number = await anext(signals)
        self._log.info("stopping", signal=signal.Signals(number).name)
        return number

    async def _drain(self, signals: AsyncIterator[int], first: int) -> None:
        """Become unready, refuse new connections, and move clients to other gateways.

        A second signal ends the drain at once.
        """
        began = time.monotonic()
        self._drained_from = len(self._reactor.pairs)
        self._draining = True
        grace = 0.0 if first == AT_ONCE else self._configuration.deadlines.grace
        self._manager.stopping(grace + MARGIN)
        for server in self._servers:
            server.stop()
        for figures in self._listeners.values():
            figures.stopped = True
        for services in self._services:
            services.leave(self._generation)
        with trio.move_on_after(grace):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_at_signal, signals, nursery.cancel_scope)
                await drain(self._reactor, grace)
                nursery.cancel_scope.cancel()
        self._tell_drain(began)

    def _tell_drain(self, began: float) -> None:
        """Export the span of the drain."""
        left = len(self._reactor.pairs)
        counts = {"gateway.connections": self._drained_from, "gateway.connections_left": left}
        if self._spans is not None:
            error = "time_over" if left else ""
            self._spans(Span("drain", began, time.monotonic(), error, counts))

    async def _cancel_at_signal(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        at_once = (AT_ONCE,) if self._inherited else STOP
        while await self._stop_signal(signals) not in at_once:
            pass
        scope.cancel()

    # -- the console -------------------------------------------------------------------------

    def console_answers(self) -> Answers:
        """Return the functions that answer the console's questions about this process, by the name
        of the question."""
        from gateway.console.facts import Facts, Sources
        from gateway.console.live import SHOWN

        limiting = self._limiting
        assert self._open_accounts is not None, "there is a console"
        sources = Sources(
            books=self._books(),
            accounts=self._open_accounts,
            connections=self._connection_facts,
            listeners=self._listeners,
            brokers=self._broker_health,
            rules=tuple if limiting is None else limiting.shaper.figures,
            expired=tuple if limiting is None else limiting.reloader.expired,
            denied={} if limiting is None else limiting.access.denied,
            latencies=self._latencies,
            slow=self._slow,
            delays=self._delays,
            plane=self._plane_figures,
            unready=self.unready,
            draining=self._drain_facts,
            descriptors=lambda: (machine.open_descriptors(), machine.descriptors()),
        )
        # A worker tells more, so that what is busy in all of them together is not left out.
        rows = SHOWN if self._inherited is None else 4 * SHOWN
        operating = Operating(self._end, log.LEVELS, self._tracings.values())
        return {**Facts(sources, time.monotonic, rows).answers(), **operating.answers()}

    def _connection_facts(self) -> Iterator[ConnectionFacts]:
        from gateway.console.facts import ConnectionFacts

        now = time.monotonic()
        for pair in tuple(self._reactor.pairs):
            connection = pair.owner
            assert isinstance(connection, Connection)
            caller = pair.session.caller
            yield ConnectionFacts(
                connection.id,
                caller.listener or "",
                str(connection.client),
                caller,
                None if connection.broker is None else str(connection.broker),
                connection.tls,
                now - connection.began,
            )

    def _end(self, id: int, reason: EndReason) -> bool:
        for pair in tuple(self._reactor.pairs):
            if isinstance(pair.owner, Connection) and pair.owner.id == id:
                pair.end(reason)
                return True
        return False

    def _drain_facts(self) -> Draining | None:
        from gateway.console.facts import Draining

        if not self._draining:
            return None
        return Draining(self._drained_from, len(self._reactor.pairs))

    # -- readiness and metrics ---------------------------------------------------------------

    def unready(self) -> list[str]:
        """Return the reasons why new clients should not connect to this process; an empty list if
        they may."""
        reasons = ["draining"] if self._draining else []
        # Others have no clients: they may be there for the records of this gateway.
        used = {
            listener.cluster: self._clusters[listener.cluster]
            for listener in self._configuration.listeners
        }
        for name, cluster in used.items():
            if not cluster.brokers.ready:
                reasons.append(f"no healthy broker in cluster {name}")
            if isinstance(cluster.parts.credential.current(), Denial):
                reasons.append(f"no credential for cluster {name}")
        return reasons

    def expositions(self) -> dict[str, Callable[[], Iterator[bytes]]]:
        """Return the functions that write metrics, by URL path. Call this once, because the
        functions cache labels."""
        from gateway.admin.routes import METRICS, TOPICS
        from gateway.telemetry.exposition import (
            LatencyExposition,
            PrincipalExposition,
            ProgressExposition,
            TenantExposition,
            TopicExposition,
        )
        from gateway.telemetry.process import ProcessMetrics, Sources

        limiting = self._limiting
        sharing = None if limiting is None else limiting.sharing
        clusters = {name: cluster.parts.figures for name, cluster in self._clusters.items()}
        sources = Sources(
            version=__version__,
            listeners=self._listeners,
            clusters=clusters,
            plane=self._plane_figures,
            brokers=self._broker_health,
            failures=self._broker_failures,
            rules=tuple if limiting is None else limiting.shaper.figures,
            log=self._lines,
            audit=None if self._audit is None else self._audit.figures,
            usage=None if self._recording is None else self._recording.figures,
            shipper=None if self._shipping is None else self._shipping.figures,
            export=None if self._export is None else self._export.figures,
            openings=self._displaced,
            latencies=self._latencies,
            dials=self._dials if self._latencies else {},
            delays=self._delays if self._latencies else None,
            denied=None if limiting is None else limiting.access.denied,
            denied_tenants=self._denials.counts,
            reloads=None if limiting is None else limiting.figures,
            store=None if sharing is None else sharing.supplier.figures,
            issuers=self._needs.issuers,
            agent=self._needs.agent,
            tls=None if self._renewal is None else self._renewal.figures,
        )
        process = ProcessMetrics(sources)
        latencies = LatencyExposition(self._latencies)
        books = self._books()
        verified = any(listener.checksums == "verify" for listener in self._configuration.listeners)
        tenants = TenantExposition(books, verified=verified)
        folded = self._configuration.metrics.partitions == "folded"
        topics = TopicExposition(books, verified=verified, folded=folded)
        principals = PrincipalExposition(self._principals, verified=verified)
        progress = ProgressExposition(
            {name: figures.progress for name, figures in clusters.items()}
        )

        return {
            METRICS: _in_turn(process, latencies, tenants, principals),
            TOPICS: _in_turn(topics, progress),
        }

    def _plane_figures(self) -> PlaneFigures:
        reactor, memory = self._reactor, self._reactor.memory
        return PlaneFigures(
            buffered=memory.kept,
            held=memory.held,
            collected=memory.collected,
            remembered=self._budget.taken,
            turns=reactor.turns,
            turn_seconds=reactor.turn_seconds,
            resets=reactor.resets,
        )

    def _broker_health(self) -> Iterable[BrokerHealth]:
        for name, cluster in self._clusters.items():
            for state in cluster.brokers.statistics():
                yield BrokerHealth(name, str(state.endpoint.address), state.healthy)

    def _broker_failures(self) -> Iterable[BrokerFailures]:
        for name, cluster in self._clusters.items():
            for cause, number in cluster.brokers.failures().items():
                yield BrokerFailures(name, cause.value, number)
