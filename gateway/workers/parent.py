"""The parent of the workers: it binds the listening sockets, keeps the workers running, and answers
for all of them.

No client's byte passes through it. It serves scrapes and readiness probes, and hands out
reservations of the limits that the workers share.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
import trio

from gateway import __version__, assembly
from gateway.app import (
    INFO_EVENTS,
    MARGIN,
    Application,
    configuration_errors_unwrapped,
    configured_log,
)
from gateway.config import model
from gateway.config.show import shown
from gateway.listening.binding import listen
from gateway.policy.reservations import Reservations, Reserved, UnitRequest
from gateway.system.interpreter import begin_collections, command
from gateway.system.manager import NOBODY, Manager
from gateway.system.signals import AT_ONCE, STOP, received
from gateway.telemetry.figures import LogFigures
from gateway.telemetry.log import LEVELS
from gateway.verifiers import Needs
from gateway.workers import briefing
from gateway.workers.briefing import Briefing
from gateway.workers.channel import Handler
from gateway.workers.crew import Crew, Start

if TYPE_CHECKING:
    from gateway.identity.credential import OwnCredential

CONSOLE_PATIENCE = 2.0
"""Seconds for a worker's answer to the console. 100,000 topics take one; people wait for them."""

WORKER = "gateway.workers.worker"

_SECRET = 32
"""Bytes of a sealing secret, as in a sealing key's file."""


def run(configuration: model.Configuration, size: int, *, trace: bool = False) -> int:
    """Run the gateway with `size` worker processes, until a signal stops it. Return the exit
    status.

    Raises `ConfigurationError` if the configuration cannot be put in force.
    """
    export = assembly.make_export(configuration)
    log = configured_log(configuration, trace=trace, export=export)
    with log as lines, configuration_errors_unwrapped():
        Application(configuration)  # finds mistakes in files before anything is started
        gc.collect()
        begin_collections()
        manager = Manager.of(os.environ, os.getpid())
        parent = Parent(configuration, size, trace=trace, lines=lines, manager=manager)
        trio.run(parent.serve)
    return 0


class Parent:
    """The parent process of a gateway with several workers."""

    def __init__(
        self,
        configuration: model.Configuration,
        size: int,
        *,
        trace: bool = False,
        clock: Callable[[], float] = time.monotonic,
        lines: LogFigures | None = None,
        manager: Manager = NOBODY,
    ) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._clock = clock
        self._lines = LogFigures() if lines is None else lines
        self._configuration = configuration
        self._size = size
        self._trace = trace
        self._manager = manager
        self._sockets: dict[str, Sequence[socket.socket]] = {}
        self._seals = _seals(configuration)
        self._limits = Reservations()
        self._needs = Needs(self._log_event)
        self._shipping = assembly.make_shipping(configuration, self._credential)
        self._draining = False

    async def serve(self) -> None:
        """Serve until SIGTERM or SIGINT. Return when all workers have ended."""
        async with (
            received(*STOP) as signals,
            trio.open_nursery() as outer,
        ):
            passed = self._manager.sockets(
                listener.name for listener in self._configuration.listeners
            )
            for listener in self._configuration.listeners:
                self._sockets[listener.name] = passed.get(listener.name) or listen(listener.binds)
            self._crew = Crew(
                self._size, Start(command(WORKER), self._descriptors(), self._handlers)
            )
            await self._start_admin(outer)
            await self._start_console(outer)
            for task in self._needs.tasks:  # the credential of the shipper
                outer.start_soon(task)
            live = partial(self._live, signals)
            await (live() if self._shipping is None else self._shipping.during(live))
            outer.cancel_scope.cancel()
        self._log.info("stopped")

    # -- records for topics ------------------------------------------------------------------

    def _credential(self, cluster: str) -> OwnCredential:
        settings = self._configuration.clusters[cluster].credential
        return assembly.make_credential(
            settings, self._needs, partial(self._log_event, cluster=cluster)
        )

    def _log_event(self, event: str, **values: object) -> None:
        log_at = self._log.info if event in INFO_EVENTS else self._log.warning
        log_at(event, **values)

    # -- the workers -------------------------------------------------------------------------

    async def _live(self, signals: AsyncIterator[int]) -> None:
        async with trio.open_nursery() as nursery:
            if self._configuration.rules:
                await nursery.start(self._pass_on_hang_ups)
            nursery.start_soon(self._crew.run)
            nursery.start_soon(self._stop, signals)
            nursery.start_soon(self._tell_ready)
            if self._manager.is_watching:
                nursery.start_soon(self._manager.keep_alive)
            await self._crew.ended.wait()
            nursery.cancel_scope.cancel()

    async def _tell_ready(self) -> None:
        await self._crew.listened.wait()
        self._manager.ready()

    async def _pass_on_hang_ups(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Pass SIGHUP on to the workers, each of which reloads its own rules.

        Without rules nothing handles the signal, and it ends the process as by default.
        """
        async with received(signal.SIGHUP) as hang_ups:
            task_status.started()
            async for _ in hang_ups:
                self._crew.signal(signal.SIGHUP, listening=True)

    async def _stop(self, signals: AsyncIterator[int]) -> None:
        """Drain all workers at the first signal, and end them at the second."""
        await self._wait_for_signal(signals)
        self._draining = True
        grace = self._configuration.deadlines.grace + MARGIN
        self._manager.stopping(grace + MARGIN)
        for sock in (sock for sockets in self._sockets.values() for sock in sockets):
            sock.close()
        self._crew.stop()
        with trio.move_on_after(grace):
            while True:
                await self._wait_for_signal(signals)
                self._crew.signal(AT_ONCE)
        self._log.warning("workers_killed", workers=self._crew.running)
        self._crew.signal(signal.SIGKILL)

    async def _wait_for_signal(self, signals: AsyncIterator[int]) -> None:
        self._log.info("stopping", signal=signal.Signals(await anext(signals)).name)

    # -- the workers' questions --------------------------------------------------------------

    def _descriptors(self) -> list[int]:
        return [sock.fileno() for sockets in self._sockets.values() for sock in sockets]

    def _handlers(self, worker: int) -> Mapping[str, Handler]:
        return {
            "briefing": lambda _: [briefing.encode(self._briefing(worker))],
            "reserve": lambda asks: self._reserve(worker, asks),
            "beat": lambda _: [self._crew.running],
        }

    def _briefing(self, worker: int) -> Briefing:
        descriptors = {
            name: [sock.fileno() for sock in sockets] for name, sockets in self._sockets.items()
        }
        configuration = self._configuration
        return Briefing(
            worker,
            self._size,
            configuration,
            self._trace,
            descriptors,
            self._seals,
            self._needs.secret,
        )

    def _reserve(self, worker: int, asks: Any) -> Iterator[Any]:
        yield [self._reserve_one(worker, request) for request in asks]

    def _reserve_one(self, worker: int, request: Any) -> Reserved | str:
        """Answer one reservation. A bug with one limit must not fail the others."""
        try:
            (answer,) = self._limits.reserve(str(worker), [UnitRequest(*request)], self._clock())
        except Exception as failure:  # noqa: BLE001
            self._log.exception("reservation_failed", worker=worker)
            return f"the parent process failed: {failure!r}"
        return answer

    # -- the admin listener ------------------------------------------------------------------

    async def _start_admin(self, nursery: trio.Nursery) -> None:
        admin = self._configuration.admin
        if admin is None:
            return
        from gateway.admin.server import Bounds, serve
        from gateway.workers.answers import Answers

        shipper = None if self._shipping is None else self._shipping.figures
        answers = Answers(self._crew, lambda: self._draining, self._lines, shipper)
        bounds = Bounds(assembly.admin_connections(admin.connections, clients=0), admin.scrapes)
        arrivals = assembly.make_arrivals(admin)
        client_of = None if arrivals is None else arrivals.client
        start = partial(serve, admin.bind, answers.routes(), bounds=bounds, client_of=client_of)
        addresses = await nursery.start(start)
        self._log.info("admin_listening", addresses=[str(address) for address in addresses])

    # -- the console -------------------------------------------------------------------------

    async def _start_console(self, nursery: trio.Nursery) -> None:
        console = self._configuration.console
        if console is None:
            return
        from gateway.console.running import Operated, run_console
        from gateway.console.views import About
        from gateway.listening.openings import Openings
        from gateway.tls.stream import Shared

        openings = Openings(self._configuration.limits.unauthenticated)
        settings = assembly.console_settings(console, Shared())
        sides = {} if settings.tls is None else {"console": settings.tls}
        if (renewal := assembly.make_renewal(sides)) is not None:
            nursery.start_soon(renewal.run)
        reload = partial(self._crew.signal, signal.SIGHUP, listening=True)
        operated = Operated(
            self._ask_workers,
            About(__version__, time.time(), partial(shown, self._configuration)),
            partial(signal.raise_signal, signal.SIGTERM),
            reload if self._configuration.rules else None,
        )
        await nursery.start(run_console, settings, operated, openings)

    async def _ask_workers(self, question: str, value: Any) -> list[list[Any]]:
        """See `console.asking.Ask`."""
        if question == "level":
            LEVELS.set(*value)  # this process logs too
        answers = await self._crew.ask("console", CONSOLE_PATIENCE, [question, value])
        return [[part for part in parts if part is not None] for parts in answers.values()]


def _seals(configuration: model.Configuration) -> dict[str, bytes]:
    """Return a sealing secret for each cluster, so that all workers open the names that one has
    sealed.

    Only clusters without sealing keys use it.
    """
    return {name: os.urandom(_SECRET) for name in configuration.clusters}
