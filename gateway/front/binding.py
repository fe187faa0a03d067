"""Listening sockets of an address. Whoever binds them may be another process than who accepts."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from gateway.errors import ConfigurationError
from gateway.wire.address import Address

BACKLOG = 1024
"""Connections that the kernel accepts for us while a turn lasts; capped by `somaxconn`."""

_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


def listening(binds: Iterable[Address]) -> list[socket.socket]:
    """Bind and listen, on both families where no host is named. Raises `ConfigurationError`."""
    found: list[socket.socket] = []
    try:
        for bind in binds:
            found += _on_each_family(bind)
    except BaseException:
        _close(found)
        raise
    return found


def _on_each_family(bind: Address) -> list[socket.socket]:
    found: list[socket.socket] = []
    try:
        for host in [bind.host] if bind.host else ["0.0.0.0", "::"]:  # noqa: S104
            found.append(_listening(Address(host, _port(found, bind.port))))
    except OSError as error:
        # Without IPv6 in the kernel all addresses are those of IPv4.
        if bind.host or not found or error.errno not in _NO_IPV6:
            _close(found)
            reason = (error.strerror or str(error)).lower()
            raise ConfigurationError(
                f"cannot listen on {bind}: {reason}; another bind, or ask why: gateway doctor"
            ) from None
    return found


def addresses(sockets: Iterable[socket.socket]) -> tuple[Address, ...]:
    """Where they listen."""
    return tuple(Address(*sock.getsockname()[:2]) for sock in sockets)


def _close(sockets: Iterable[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def _port(found: list[socket.socket], port: int) -> int:
    """Both address families get the same port, when the kernel chooses it."""
    return found[0].getsockname()[1] if found and not port else port


def _listening(address: Address) -> socket.socket:
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
