"""What a listener of HTTP asks of a new connection before TLS: the header of a trusted proxy, and
that its client does not connect too often. The console and the admin server share it."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress

import trio

from gateway.listening.pace import Pace
from gateway.listening.proxied import TrustedProxies, header_of
from gateway.plane.stream import Stream
from gateway.wire.proxy_header import HeaderError

PATIENCE = 10.0
"""Seconds for a PROXY header to come. A proxy sends it at once."""


class Arrivals:
    """Lets connections of one listener in. `proxies`: the networks of trusted proxies, which state
    clients' addresses. `connects`: new connections of one address per second; None: unlimited."""

    def __init__(self, proxies: TrustedProxies, connects: float | None) -> None:
        self._proxies = proxies
        self._pace = Pace(connects)

    async def client(
        self,
        sock: socket.socket,
        host: str,
        waiting: Callable[[], AbstractContextManager[object]],
        readable: Callable[[Stream], Awaitable[None]] = trio.lowlevel.wait_readable,
    ) -> str | None:
        """Return the address of a new connection's client; None if the connection has to end: its
        proxy's header is missing or wrong, or its client connects too often. `host`: the address of
        the peer. `waiting`, `readable`: see `proxied.header_of`."""
        if self._proxies.include(host):
            header = None
            with trio.move_on_after(PATIENCE), suppress(HeaderError, OSError):
                header = await header_of(sock, readable, waiting)
            if header is None:
                return None
            host = host if header.source is None else header.source.host
        return host if self._pace.may_connect(host, trio.current_time()) else None
