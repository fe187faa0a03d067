"""The composition root: the one module that knows all the others.

Nesting of nurseries is the order of shutdown, inside out: listeners stop first, the plane and its
jobs go on for the grace period, the admin listener answers to the last.
"""

from __future__ import annotations

import errno
import gc
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import trio

from gateway import __version__, assembly
from gateway.brokers.health import Brokers, Timing
from gateway.brokers.learned import LearnedHosts
from gateway.brokers.targets import TargetList
from gateway.config import model
from gateway.config.load import check as check_file
from gateway.config.load import load
from gateway.control.services import ClusterParts, ListenerServices
from gateway.errors import ConfigurationError
from gateway.front.drain import drain
from gateway.front.jobs import Jobs
from gateway.front.readiness import Readiness
from gateway.front.server import Server, ServerSettings
from gateway.front.tracing import Tracing
from gateway.identity.credential import NoCredential, TokenFile
from gateway.plane.reactor import Reactor
from gateway.policy.accounts import AccountBook
from gateway.protocols import PLUGINS
from gateway.system.interpreter import collect_rarely
from gateway.system.signals import AT_ONCE, STOP, received
from gateway.telemetry import log
from gateway.telemetry.figures import (
    BrokerFailures,
    BrokerHealth,
    ClusterFigures,
    ListenerFigures,
    LogFigures,
    PlaneFigures,
)
from gateway.wire.budget import Budget
from gateway.wire.contract import Entry
from gateway.wire.plugin import EntrySettings, Mode

if TYPE_CHECKING:
    from gateway.assembly import Inherited
    from gateway.fleet.store import Store

Status = trio.TaskStatus[None]

VERSION = f"broker-gateway {__version__}"
"""What brokers are told as `proxy_version`."""


def check(path: Path) -> str:
    """Answer what `gateway check` prints of a good file: all that `run` does before it listens.

    Raises as `run` does: keys are read here too, and a file that holds none is a mistake.
    """
    found = check_file(path)
    log.configure(log.Style(level="error"))  # a mistake that is raised need not be logged too
    Application(load(path))
    return found


def run(configuration: model.Configuration, *, trace: bool = False) -> int:
    """Serve until a signal says to stop; answers the exit status.

    Raises `ConfigurationError` where the configuration cannot be put in force.
    """
    with logged(configuration, trace=trace) as lines, mistakes_told():
        application = Application(configuration, trace=trace, lines=lines)
        trio.run(application.serve)
    return 0


@contextmanager
def logged(
    configuration: model.Configuration, *, trace: bool, **always: object
) -> Iterator[LogFigures]:
    """Log as a configuration says, by a thread; `always`: fields of every line.

    At the end what waits is written, for a second at the most.
    """
    settings = configuration.log
    # Traces are written as information: who asks for them wants to see them.
    level = "info" if trace and settings.level != "debug" else settings.level
    style = log.Style(settings.format, level, settings.burst, settings.longest_text, always)
    queue = log.configure_queued(style, lines=settings.queue_lines, size=settings.queue)
    try:
        yield queue.figures
    finally:
        queue.close()


@contextmanager
def mistakes_told() -> Iterator[None]:
    """What only a person can set right is raised as `ConfigurationError`, and nothing else."""
    try:
        yield
    except (ExceptionGroup, OSError) as failures:
        mistake = _unwrapped(failures)
        if isinstance(mistake, ConfigurationError):
            raise mistake from None
        if isinstance(mistake, OSError) and mistake.errno in _NO_DESCRIPTOR:
            raise ConfigurationError(_DESCRIPTORS) from None
        raise


_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
_DESCRIPTORS = "cannot start: too many open files; raise the limit, for example: ulimit -n 21000"


def _unwrapped(error: BaseException) -> BaseException:
    """Take off the groups of one that nested nurseries put around a failure."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@dataclass(slots=True)
class _Cluster:
    """One cluster, put together."""

    name: str
    brokers: Brokers
    parts: ClusterParts
    accounts: AccountBook
    figures: ClusterFigures = field(default_factory=ClusterFigures)


class Application:
    """All rooms of one process, furnished as a configuration says.

    `store`: where limits are shared with other processes. `inherited`: what a worker has of its
    parent. `lines`: of the log.
    """

    def __init__(
        self,
        configuration: model.Configuration,
        *,
        trace: bool = False,
        store: Store | None = None,
        inherited: Inherited | None = None,
        lines: LogFigures | None = None,
    ) -> None:
        self._configuration = configuration
        self._inherited = inherited
        self._lines = LogFigures() if lines is None else lines
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._jobs = Jobs()
        self._reactor = Reactor(self._jobs, assembly.plane_settings(configuration))
        self._jobs.reactor = self._reactor
        self._readiness = Readiness()
        self._budget = Budget(configuration.limits.all_remembered)
        self._rules = assembly.rules(configuration, self._reactor, store)
        self._clusters = {
            name: self._cluster(name, cluster) for name, cluster in configuration.clusters.items()
        }
        self._services: list[ListenerServices] = []
        self._listeners = {listener.name: ListenerFigures() for listener in configuration.listeners}
        ids = count(1)
        self._servers = [
            self._server(listener, ids, trace=trace) for listener in configuration.listeners
        ]
        self._draining = False
        # Of the names that clients are sent away with: those of two gateways must differ, because
        # a client that was moved here by the one has a connection of that name.
        self._generation = secrets.randbelow(2**32 - 1) + 1

    # -- putting together --------------------------------------------------------------------

    def _cluster(self, name: str, cluster: model.Cluster) -> _Cluster:
        def tell(event: str, **values: object) -> None:
            log_at = self._log.info if event in _GOOD_NEWS else self._log.warning
            log_at(event, cluster=name, **values)

        targets = TargetList.of(cluster.brokers, cluster.targets)
        protocol = PLUGINS[assembly.protocol(self._configuration, name)]
        learned = LearnedHosts(protocol, targets=targets.filter_listed)
        deadlines = self._configuration.deadlines
        timing = Timing(dial_timeout=deadlines.dial, attempt_timeout=min(3.0, deadlines.dial))
        buffer = self._configuration.data_plane.socket_buffer
        brokers = Brokers(
            name, cluster.brokers, targets, learned, timing, socket_buffer=buffer, log=tell
        )
        own = cluster.credential
        credential = TokenFile(own.token_file, tell) if own else NoCredential()
        accounts, figures = AccountBook(), ClusterFigures()
        secret = self._inherited.seals.get(name) if self._inherited else None
        names = assembly.names(name, cluster, secret)
        known = (names, learned, credential, accounts, figures)
        parts = ClusterParts(name, *known, assembly.migrations(cluster))
        return _Cluster(name, brokers, parts, accounts, figures)

    def _server(self, listener: model.Listener, ids: count[int], *, trace: bool) -> Server:
        cluster = self._clusters[listener.cluster]
        limits, deadlines = self._configuration.limits, self._configuration.deadlines
        settings = ServerSettings(
            name=listener.name,
            binds=listener.bind,
            handshake=deadlines.handshake,
            handshake_frame=limits.handshake_frame,
            connections=limits.connections,
            socket_buffer=self._configuration.data_plane.socket_buffer,
            shared=self._inherited is not None,
        )
        return Server(
            settings,
            self._entry(listener, cluster),
            cluster.brokers,
            self._reactor,
            self._readiness,
            self._listeners[listener.name],
            Tracing(listener.trace, everything=trace),
            ids,
        )

    def _entry(self, listener: model.Listener, cluster: _Cluster) -> Entry:
        services = ListenerServices(
            cluster.parts,
            assembly.verifiers(listener.identity),
            self._log.warning,
            name=listener.name,
            limits=None if self._rules is None else self._rules.shaper,
        )
        self._services.append(services)
        chained = self._configuration.clusters[listener.cluster].brokers_are == "gateways"
        return PLUGINS[listener.protocol].enter(
            EntrySettings(
                services=services,
                mode=Mode(listener.identity.mode),
                proxies=frozenset(listener.identity.trusted_proxies),
                chained=chained,
                limited=self._rules is not None,
                unknown_pass=listener.unknown == "pass",
                checksums=listener.checksums == "verify",
                version=VERSION,
                bounds=assembly.bounds(self._configuration.limits),
                budget=self._budget,
            )
        )

    # -- life --------------------------------------------------------------------------------

    async def serve(self, *, task_status: Status = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until SIGTERM or SIGINT. Starts when it listens."""
        async with (
            received(*STOP, *([AT_ONCE] if self._inherited else [])) as signals,
            trio.open_nursery() as outer,
        ):
            await self._start_admin(outer)
            await self._live(signals, task_status)
            outer.cancel_scope.cancel()
        self._log.info("stopped")

    async def _start_admin(self, nursery: trio.Nursery) -> None:
        admin = self._configuration.admin
        if admin is None:
            return
        # Imported only with an admin listener: 6 MB and 40 ms, which a plain relay does without.
        from gateway.admin.routes import routes
        from gateway.admin.server import Bounds, serve

        table = routes(self.exposition(), self.unready)
        clients = self._configuration.limits.connections * len(self._listeners)
        bounds = Bounds(assembly.admin_connections(admin.connections, clients), admin.scrapes)
        addresses = await nursery.start(partial(serve, admin.bind, table, bounds=bounds))
        self._log.info("admin_listening", addresses=[str(address) for address in addresses])

    async def _live(self, signals: AsyncIterator[int], task_status: Status) -> None:
        async with trio.open_nursery() as plane:
            self._jobs.nursery = plane
            plane.start_soon(self._reactor.run)
            plane.start_soon(self._readiness.run)
            for cluster in self._clusters.values():
                plane.start_soon(cluster.brokers.watch)
            if self._rules is not None and self._rules.sharing is not None:
                plane.start_soon(self._rules.sharing.run)
            async with trio.open_nursery() as front:
                if self._rules is not None:
                    await front.start(self._rules.reloader.run)
                self._listen(front)
                task_status.started()
                # What is there now stays: no collection need walk through it again.
                gc.freeze()
                collect_rarely()
                await self._drain(signals, await self._stop_signal(signals))
                front.cancel_scope.cancel()
            plane.cancel_scope.cancel()

    def _listen(self, nursery: trio.Nursery) -> None:
        for server in self._servers:
            sockets = self._inherited.sockets[server.settings.name] if self._inherited else ()
            addresses = [str(address) for address in server.listen(sockets)]
            nursery.start_soon(server.serve)
            self._log.info("listening", listener=server.settings.name, addresses=addresses)

    async def _stop_signal(self, signals: AsyncIterator[int]) -> int:
        number = await anext(signals)
        self._log.info("stopping", signal=signal.Signals(number).name)
        return number

    async def _drain(self, signals: AsyncIterator[int], first: int) -> None:
        """Not ready, no new connections; then clients are moved to other gateways.

        A second signal ends at once.
        """
        self._draining = True
        for server in self._servers:
            server.stop()
        for figures in self._listeners.values():
            figures.stopped = True
        for services in self._services:
            services.leave(self._generation)
        grace = 0.0 if first == AT_ONCE else self._configuration.deadlines.grace
        with trio.move_on_after(grace):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._second_signal, signals, nursery.cancel_scope)
                await drain(self._reactor, grace)
                nursery.cancel_scope.cancel()

    async def _second_signal(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        hurry = (AT_ONCE,) if self._inherited else STOP
        while await self._stop_signal(signals) not in hurry:
            pass
        scope.cancel()

    # -- what the admin listener shows -------------------------------------------------------

    def unready(self) -> list[str]:
        """Why no new client should come here."""
        reasons = ["draining"] if self._draining else []
        return reasons + [
            f"no healthy broker in cluster {cluster.name}"
            for cluster in self._clusters.values()
            if not cluster.brokers.ready
        ]

    def exposition(self) -> Callable[[], Iterator[bytes]]:
        """What writes all metrics. Made once: it remembers the labels of topics."""
        from gateway.telemetry.exposition import TopicExposition
        from gateway.telemetry.process import ProcessMetrics, Sources

        sharing = None if self._rules is None else self._rules.sharing
        sources = Sources(
            version=__version__,
            listeners=self._listeners,
            clusters={name: cluster.figures for name, cluster in self._clusters.items()},
            plane=self._plane,
            brokers=self._health,
            failures=self._failures,
            rules=tuple if self._rules is None else self._rules.shaper.figures,
            log=self._lines,
            reloads=None if self._rules is None else self._rules.figures,
            store=None if sharing is None else sharing.supplier.figures,
        )
        process = ProcessMetrics(sources)
        books = {name: cluster.accounts for name, cluster in self._clusters.items()}
        verified = any(it.checksums == "verify" for it in self._configuration.listeners)
        topics = TopicExposition(books, verified=verified)

        def write() -> Iterator[bytes]:
            yield process.render()
            yield from topics.chunks()

        return write

    def _plane(self) -> PlaneFigures:
        reactor = self._reactor
        memory = reactor.memory
        return PlaneFigures(
            buffered=memory.kept,
            held=memory.held,
            collected=memory.collected,
            remembered=self._budget.taken,
            turns=reactor.turns,
            resets=reactor.resets,
        )

    def _health(self) -> Iterable[BrokerHealth]:
        for cluster in self._clusters.values():
            for endpoint in cluster.brokers.statistics():
                yield BrokerHealth(cluster.name, str(endpoint.endpoint.address), endpoint.healthy)

    def _failures(self) -> Iterable[BrokerFailures]:
        for cluster in self._clusters.values():
            for cause, number in cluster.brokers.failures().items():
                yield BrokerFailures(cluster.name, cause.value, number)


_GOOD_NEWS = frozenset({"broker_up", "name_resolved"})


if __name__ == "__main__":
    sys.exit("run `gateway`, or `python -m gateway`")
