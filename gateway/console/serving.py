"""Serves the console over HTTP: hypercorn's protocol code on an accept loop of the gateway's own.

hypercorn has no bound on connections, and sends with a shield against cancellation and without a
deadline, so one reader that stalls would keep the process from ending. Here connections are
bounded, sending has a deadline, and the end of the process closes all of them.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext

from gateway.errors import ConfigurationError
from gateway.wire.address import Address

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from gateway.tls.sides import ConsoleSide

PATIENCE = 10.0
"""Seconds for a TLS handshake, for a head, and for a peer to take what is sent."""

HEAD_SIZE = 16 * 1024
"""Bytes of a head. A browser's is smaller, even with cookies of other servers on the same host."""

ACCEPT_PAUSE = 0.1
"""Seconds without accepting while the process has no free descriptor."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """Settings of the console's server. `connections`: how many may be open at a time. `token`:
    what requests of the API must show; None: nothing. `is_public`: other machines may connect, by
    any host name. `tls`: holds the TLS context for new connections; None: plain HTTP."""

    bind: Address
    connections: int = 64
    token: bytes | None = None
    is_public: bool = False
    tls: ConsoleSide | None = None


async def serve_console(
    settings: ConsoleSettings,
    app: ASGIApp,
    *,
    task_status: trio.TaskStatus[tuple[Address, ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` over HTTP until cancelled. Once the server listens, `task_status` gets its
    addresses. Raises `ConfigurationError` if the server cannot listen."""
    try:
        listeners = await trio.open_tcp_listeners(
            settings.bind.port, host=settings.bind.host or None
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            f"cannot listen on {settings.bind}: {reason}; another bind, or ask why: gateway doctor"
        ) from error
    server = _Server(settings, app)
    async with trio.open_nursery() as nursery:
        for listener in listeners:
            nursery.start_soon(server.accept, listener, nursery)
        task_status.started(
            tuple(Address(*listener.socket.getsockname()[:2]) for listener in listeners)
        )


class _Server:
    def __init__(self, settings: ConsoleSettings, app: ASGIApp) -> None:
        self._tls = settings.tls
        self._app = ASGIWrapper(cast(Any, _Logged(app)))
        self._places = trio.Semaphore(settings.connections)
        self._config = Config()
        self._config.h11_max_incomplete_size = HEAD_SIZE
        self._config.keep_alive_timeout = PATIENCE
        self._config.include_server_header = False
        self._config.errorlog = None
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        """Accept connections while fewer than the maximum are open; further ones wait in the
        kernel."""
        async with listener:
            while True:
                await self._places.acquire()
                try:
                    stream = await listener.accept()
                except OSError as error:
                    self._places.release()
                    self._log.warning("console_accept_failed", reason=error.strerror)
                    await trio.sleep(ACCEPT_PAUSE)
                    continue
                nursery.start_soon(self._attend, stream)

    async def _attend(self, stream: trio.SocketStream) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_close_when_cancelled, stream)
                secured = await self._secured(stream)
                if secured is not None:
                    await self._converse(secured)
                nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - it ends its own connection
            self._log.warning("console_connection_failed", exc_info=error)
        finally:
            self._places.release()

    async def _secured(self, stream: trio.SocketStream) -> _Stream | None:
        """Return the stream to talk over; None if the peer speaks no proper TLS."""
        if self._tls is None:
            return _Stream(stream, stream)
        tls = trio.SSLStream(stream, self._tls.context, server_side=True, https_compatible=True)
        with trio.move_on_after(PATIENCE), suppress(trio.BrokenResourceError):
            await tls.do_handshake()
            return _Stream(tls, stream)
        return None

    async def _converse(self, stream: _Stream) -> None:
        context = WorkerContext(None)
        await TCPServer(self._app, self._config, context, cast(Any, {}), cast(Any, stream)).run()


async def _close_when_cancelled(stream: trio.SocketStream) -> None:
    """Close the socket at the end of the process: a shielded send would go on."""
    try:
        await trio.sleep_forever()
    finally:
        stream.socket.close()


class _Stream:
    """A stream whose peer has a deadline to take what is sent. `socket`: hypercorn reads its
    addresses."""

    def __init__(
        self,
        stream: trio.SocketStream | trio.SSLStream[trio.SocketStream],
        under: trio.SocketStream,
    ) -> None:
        self._stream = stream
        self.socket: socket.socket = cast(Any, under.socket)

    async def receive_some(self, size: int) -> bytes | bytearray:
        return await self._stream.receive_some(size)

    async def send_all(self, data: bytes) -> None:
        with trio.move_on_after(PATIENCE) as scope:
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            raise trio.BrokenResourceError("the peer does not read")

    async def send_eof(self) -> None:
        if isinstance(self._stream, trio.SocketStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        with trio.move_on_after(1.0):
            await self._stream.aclose()


class _Logged:
    """Logs what an application raises; its client has got a response by then."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001
            self._log.error("console_request_failed", path=scope.get("path"), exc_info=error)
