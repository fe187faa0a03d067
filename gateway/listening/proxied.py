"""The PROXY protocol on both sides of a connection: what proxies say about clients, and what the
gateway says about them to brokers. `wire.proxy_header` has the headers.

A header is read from the socket itself, before TLS. Its bytes are peeked at first, because the
bytes behind it belong to the client. While its size is not known, all bytes that have come belong
to it and are taken: left in the socket they would wake this reader again and again, and a proxy
that sends one byte at a time would cost a turn of the process for each.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from ipaddress import IPv4Network, IPv6Network, ip_address

from gateway.plane.stream import Stream
from gateway.tls.stream import TlsStream
from gateway.wire.address import Address
from gateway.wire.proxy_header import (
    AUTHORITY,
    LONGEST,
    PRINCIPAL,
    Header,
    HeaderError,
    Tls,
    Value,
    load,
    made,
    read,
    size_of,
)


class TrustedProxies:
    """The networks of a listener's trusted proxies. Connections from there begin with a PROXY
    header; the bytes of other peers are never read as a PROXY header."""

    def __init__(self, networks: Iterable[IPv4Network | IPv6Network] = ()) -> None:
        self._networks = tuple(networks)
        if self._networks:
            load()

    def include(self, host: str) -> bool:
        """Return whether this address belongs to a trusted proxy."""
        if not self._networks:
            return False
        address = ip_address(host.partition("%")[0])
        return any(address in network for network in self._networks)


async def header_of(
    sock: socket.socket,
    readable: Callable[[Stream], Awaitable[None]],
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Header | None:
    """Receive a PROXY header from a non-blocking socket, and no byte behind it; return the header,
    or None if the peer closed without sending anything. The caller sets a deadline.

    `readable`: waits for bytes. `waiting`: makes the context that is entered during each wait for
    the peer. Raises `HeaderError` if the bytes are no PROXY header, and `OSError` if the connection
    is lost.
    """
    taken = bytearray()
    while True:
        try:
            seen = sock.recv(LONGEST - len(taken), socket.MSG_PEEK)
        except BlockingIOError:
            with waiting():
                await readable(sock)
            continue
        if not seen:
            if taken:
                raise HeaderError("the connection ended within its PROXY header")
            return None
        size = size_of(taken + seen)
        belongs = min(size - len(taken), len(seen)) if size else len(seen)
        taken += sock.recv(belongs)
        if len(taken) == size:
            return read(bytes(taken))


def _nameless(_certificate: bytes) -> str | None:
    return None


class Introduction:
    """Makes the PROXY headers that tell a cluster's brokers about clients.

    `principal`: the headers contain the principal that the gateway verified. `common_name`: returns
    the common name in a certificate (DER).
    """

    def __init__(
        self,
        *,
        principal: bool = False,
        common_name: Callable[[bytes], str | None] = _nameless,
    ) -> None:
        self._principal = principal
        self._common_name = common_name

    def header(
        self, client: Address, destination: Address, stream: Stream, principal: str | None
    ) -> bytes:
        """Return the PROXY header about a client. `destination`: the address that the client
        connected to. `stream`: the client's connection, whose TLS session the header describes.
        `principal`: the client's, None if unknown."""
        values = list[Value]()
        if isinstance(stream, TlsStream):
            if stream.server_name is not None:
                values.append(Value(AUTHORITY, stream.server_name.encode()))
            values.append(self._tls(stream).value)
        if self._principal and principal is not None:
            values.append(Value(PRINCIPAL, principal.encode()))
        return made(Header(client, destination, tuple(values)))

    def _tls(self, stream: TlsStream) -> Tls:
        certificate = stream.certificate
        version = stream.version or ""
        if certificate is None:
            return Tls(version)
        name = self._common_name(certificate)
        return Tls(version, certificate=True, now=not stream.resumed, common_name=name)
