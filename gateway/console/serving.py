"""Serves the console over HTTP/1.1.

Until a request shows that its client is an operator, its connection is one of the process's
unauthenticated connections, and gives way to newer ones. Operators' connections have a bound of
their own, so strangers take none of their places.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import h11
import structlog
import trio

from gateway.admin.http import PATIENCE, RequestTurns, Talk
from gateway.console.exchange import GONE, Exchange, scope_of
from gateway.console.guard import LARGEST_BODY
from gateway.listening.acceptor import Acceptor
from gateway.listening.flow import Flow
from gateway.listening.readiness import Readiness
from gateway.plane.stream import Stream, has_records
from gateway.tls.handshake import shake

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Scope

    from gateway.listening.arrivals import Arrivals
    from gateway.listening.openings import Openings
    from gateway.tls.sides import ServerSide
    from gateway.wire.address import Address


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """Settings of the console's server. `connections`: how many of operators may be open at a time.
    `token`: what requests of the API must show; None: nothing. `is_public`: other machines may
    connect, by any host name. `tls`: makes the TLS streams of clients; None: plain HTTP.
    `arrivals`: lets connections in; None: any may come."""

    bind: Address
    connections: int = 64
    token: bytes | None = None
    is_public: bool = False
    tls: ServerSide | None = None
    arrivals: Arrivals | None = None


async def serve_console(
    settings: ConsoleSettings,
    app: ASGIApp,
    is_operator: Callable[[Scope], bool],
    openings: Openings,
    *,
    task_status: trio.TaskStatus[tuple[Address, ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` over HTTP until cancelled. Once the server listens, `task_status` gets its
    addresses. `is_operator`: returns whether a request shows that its client is an operator.
    `openings`: counts unauthenticated connections. Raises `ConfigurationError` if the server cannot
    listen."""
    server = _Server(settings, app, is_operator, openings)

    def arrived(sock: socket.socket, client: Address, _reached: Address) -> None:
        openings.begin(sock, client.host)
        nursery.start_soon(server.attend, sock, client.host)

    acceptor = Acceptor("console", openings, arrived)
    listening = acceptor.listen([settings.bind])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.readiness.run)
        task_status.started(listening)
        await acceptor.serve()


class _Server:
    def __init__(
        self,
        settings: ConsoleSettings,
        app: ASGIApp,
        is_operator: Callable[[Scope], bool],
        openings: Openings,
    ) -> None:
        self.settings = settings
        self.app = app
        self.is_operator = is_operator
        self.openings = openings
        self.readiness = Readiness()
        self.turns = RequestTurns()
        self.operators = 0

    async def attend(self, sock: socket.socket, host: str) -> None:
        """Serve one connection until it ends. Raises nothing."""
        with trio.CancelScope() as scope:
            try:
                client = await self._client(sock, host, scope)
                stream = None if client is None else await self._secured(sock, scope)
                if client is not None and stream is not None:
                    visitor = _Visitor(self, sock, client, stream)
                    with self.openings.waiting(sock, scope):
                        await visitor.attend()
            except Exception as error:  # it ends its own connection
                log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
                log.warning("console_connection_failed", exc_info=error)
            finally:
                self.openings.end(sock)
                sock.close()

    async def _client(self, sock: socket.socket, host: str, scope: trio.CancelScope) -> str | None:
        """Return the address of the client; None if the connection has to end. `host`: the address
        of the peer."""
        arrivals = self.settings.arrivals
        if arrivals is None:
            return host
        waiting = partial(self.openings.waiting, sock, scope)
        client = await arrivals.client(sock, host, waiting, self.readiness.readable)
        if client is not None:
            self.openings.attribute(sock, client)
        return client

    async def _secured(self, sock: socket.socket, scope: trio.CancelScope) -> Stream | None:
        """Return the connection's stream, after a TLS handshake if the console has TLS; None if the
        handshake fails."""
        if self.settings.tls is None:
            return sock
        stream = self.settings.tls.stream(sock)
        waiting = partial(self.openings.waiting, sock, scope)
        with trio.move_on_after(PATIENCE), suppress(OSError):
            await shake(stream, self.readiness.readable, waiting)
            return stream
        return None


class _Visitor:
    """One connection. `sock`: its socket, by which `Openings` knows it."""

    def __init__(self, server: _Server, sock: socket.socket, host: str, stream: Stream) -> None:
        self._server = server
        self._sock = sock
        self._talk = Talk(Flow(stream, server.readiness), server.turns, host)
        self._has_tls = has_records(stream)
        self._is_operator = False
        if has_records(stream) and stream.certificate is not None:
            self._count()

    async def attend(self) -> None:
        """Respond to one request after the other."""
        try:
            with suppress(*GONE):
                while await self._exchange():
                    pass
                await self._talk.linger()
        finally:
            self._server.operators -= self._is_operator

    async def _exchange(self) -> bool:
        """Respond to one request; return whether another one may follow."""
        try:
            request = await self._talk.request()
            if request is None:
                return False
            scope = scope_of(request, has_tls=self._has_tls)
            self._promote(scope)
            exchange = Exchange(self._talk, scope, await self._talk.body(LARGEST_BODY))
            if self._is_surplus:
                await exchange.refuse(503)
                return False
            return await exchange.run(self._server.app) and self._talk.is_renewed()
        except h11.RemoteProtocolError as error:
            await Exchange(self._talk, {}, b"").refuse(error.error_status_hint)
            return False

    def _promote(self, scope: Scope) -> None:
        """Count the connection among those of operators once its client is known as one."""
        if not self._is_operator and self._server.is_operator(scope):
            self._count()

    def _count(self) -> None:
        self._is_operator = True
        self._server.operators += 1
        self._server.openings.end(self._sock)

    @property
    def _is_surplus(self) -> bool:
        return self._is_operator and self._server.operators > self._server.settings.connections
