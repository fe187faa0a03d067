"""Listening sockets. One process may bind them, and another accept connections on them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from gateway.errors import ConfigurationError
from gateway.wire.address import Address

BACKLOG = 1024
"""Connections that the kernel may complete before `accept` takes them; capped by `somaxconn`."""

_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


def listen(binds: Iterable[Address]) -> list[socket.socket]:
    """Bind sockets that listen at these addresses, and return them. An address without a host gets
    two sockets, for IPv4 and IPv6.

    Raises `ConfigurationError` if the process cannot listen at an address.
    """
    sockets: list[socket.socket] = []
    try:
        for bind in binds:
            sockets += _listen_on_each_family(bind)
    except BaseException:
        _close(sockets)
        raise
    return sockets


def _listen_on_each_family(bind: Address) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for host in [bind.host] if bind.host else ["0.0.0.0", "::"]:  # noqa: S104
            # If the kernel chooses the port, both address families get the same one.
            port = sockets[0].getsockname()[1] if sockets and not bind.port else bind.port
            sockets.append(_listen_at(Address(host, port)))
    except OSError as error:
        # Without IPv6 in the kernel the IPv4 socket alone serves all addresses.
        if bind.host or not sockets or error.errno not in _NO_IPV6:
            _close(sockets)
            reason = (error.strerror or str(error)).lower()
            raise ConfigurationError(
                f"cannot listen on {bind}: {reason}; another bind, or ask why: gateway doctor"
            ) from None
    return sockets


def addresses(sockets: Iterable[socket.socket]) -> tuple[Address, ...]:
    """Return the addresses at which these sockets listen."""
    return tuple(Address(*sock.getsockname()[:2]) for sock in sockets)


def _close(sockets: Iterable[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def _listen_at(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address.pair)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock
