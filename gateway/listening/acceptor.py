"""The accept loop of all listeners.

A few connections are accepted between two polls of all sockets, so that neither they nor the tasks
that serve them delay the data plane, however many peers connect.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import intern
from typing import Protocol

import structlog
import trio

from gateway.listening.binding import addresses, listen
from gateway.listening.openings import Openings
from gateway.wire.address import Address

ACCEPTS_AT_ONCE = 16
"""Connections accepted in a row before other tasks run. If its first frame has arrived, each takes
0.3 ms."""

SHARED_PAUSE = 0.001
"""Seconds without accepting after each connection, if processes share a listener. Without it the
process that runs would accept most of a burst. Opening a connection takes half as long."""

NO_DESCRIPTOR_PAUSE = 0.1
"""Seconds without accepting when the process has no descriptor left; others close soon."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Figures(Protocol):
    """Plain counters of one listener, which telemetry reads."""

    accepted: int
    accept_failures: int


@dataclass(slots=True)
class Unread:
    """`Figures` of a listener without metrics."""

    accepted: int = 0
    accept_failures: int = 0


Arrived = Callable[[socket.socket, Address, Address], object]
"""Takes an accepted, non-blocking socket, the peer's address, and the address that accepted it. It
counts the connection in `Openings`, and starts the task that serves it."""


class Acceptor:
    """Accepts the connections of one listener. `name`: the listener's, for logs. `openings`: counts
    its unauthenticated connections; while they have no room, nothing is accepted. `shared`: other
    processes accept on the same sockets. `socket_buffer`: bytes; None: the kernel decides.
    `relieves`: if no descriptor is left, an unauthenticated connection is closed for a new one."""

    def __init__(
        self,
        name: str,
        openings: Openings,
        arrived: Arrived,
        figures: Figures | None = None,
        *,
        shared: bool = False,
        socket_buffer: int | None = None,
        relieves: bool = False,
    ) -> None:
        self._name = name
        self._openings = openings
        self._arrived = arrived
        self._figures: Figures = Unread() if figures is None else figures
        self._shared = shared
        self._socket_buffer = socket_buffer
        self._relieves = relieves
        self._sockets: list[socket.socket] = []
        self._addresses: tuple[Address, ...] = ()
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def listen(
        self, binds: Iterable[Address], sockets: Iterable[socket.socket] = ()
    ) -> tuple[Address, ...]:
        """Listen on these sockets; if there are none, bind new sockets at the addresses. Return the
        addresses of the sockets. Raises `ConfigurationError` if an address cannot be bound."""
        self._sockets = list(sockets) or listen(binds)
        self._addresses = addresses(self._sockets)
        return self._addresses

    async def serve(self) -> None:
        """Accept connections until `stop` is called."""
        try:
            async with trio.open_nursery() as nursery:
                for sock, reached in zip(self._sockets, self._addresses, strict=True):
                    nursery.start_soon(self._accept_all, sock, reached)
        finally:
            self.stop()

    def stop(self) -> None:
        """Accept no more connections. Connections that are open are not closed."""
        for sock in self._sockets:
            trio.lowlevel.notify_closing(sock)
            sock.close()
        self._sockets.clear()
        self._addresses = ()

    async def _accept_all(self, listener: socket.socket, reached: Address) -> None:
        while listener.fileno() >= 0:
            try:
                await trio.lowlevel.wait_readable(listener)
                await self._openings.room()
                self._accept_some(listener, reached)
                if self._shared:
                    await trio.sleep(SHARED_PAUSE)
            except trio.ClosedResourceError:
                return
            except OSError as error:
                if listener.fileno() < 0:
                    return
                await self._failed(error)

    def _accept_some(self, listener: socket.socket, reached: Address) -> None:
        for _ in range(1 if self._shared else ACCEPTS_AT_ONCE):
            if not self._openings.has_room:
                return
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            self._prepare(sock)
            self._figures.accepted += 1
            # One text for all connections of a host.
            self._arrived(sock, Address(intern(peer[0]), peer[1]), reached)

    def _prepare(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._socket_buffer:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, self._socket_buffer)

    async def _failed(self, error: OSError) -> None:
        self._figures.accept_failures += 1
        self._log.warning("accept_failed", listener=self._name, reason=str(error))
        if error.errno in _EXHAUSTED and not (self._relieves and self._openings.displace()):
            await trio.sleep(NO_DESCRIPTOR_PAUSE)
        else:
            await trio.lowlevel.checkpoint()
