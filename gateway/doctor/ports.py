"""Checks the addresses of listeners: whether they are free, or which program listens at them."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import trio

from gateway.config import model
from gateway.doctor.checks import Spoken, checks_of
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.reach import Network, Unreached, run_all
from gateway.doctor.secured import unverifying
from gateway.protocols import PLUGINS
from gateway.wire.address import Address

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - bound, and closed at once

_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Where to reach whatever listens on all addresses."""

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})

_LIVEZ = b"GET /livez HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n"

LARGEST_ANSWER = 4096
"""Bytes of the largest response that is read; a gateway's response has about 130."""

_RUNS = "a gateway seems to run here already"


async def examine(configuration: model.Configuration, network: Network) -> list[Finding]:
    """Try to bind each address of the listeners and of the admin listener, and probe the addresses
    that are in use; return the findings."""
    named = [broker for cluster in configuration.clusters.values() for broker in cluster.brokers]
    tries = [
        partial(_examine_listener, listener, bind, named, network)
        for listener in configuration.listeners
        for bind in listener.binds
    ]
    if configuration.admin is not None:
        tries.append(partial(_examine_admin, configuration.admin, network))
    return await run_all(tries)


async def _examine_listener(
    listener: model.Listener, bind: Address, brokers: Sequence[Address], network: Network
) -> Finding:
    check = f"{listener.name} {_format(bind)}"
    if any(points_here(broker, bind) for broker in brokers):
        return fail(
            check,
            "`brokers` names this very address: the gateway would be its own broker",
            "Let the gateway listen on another port, and give clients that one.",
        )
    error = try_bind(bind)
    if error != errno.EADDRINUSE:
        return _bind_finding(check, bind, error)
    checks = checks_of(PLUGINS[listener.protocol])
    secure = None if listener.tls is None else unverifying("localhost")
    spoken = await checks.identify(network, reachable(bind), secure)
    if spoken is not None and spoken.is_protocol:
        return warn(check, f"taken by something that {spoken.words}: {_RUNS}", *_remedy(bind))
    return _taken(check, bind, spoken)


async def _examine_admin(admin: model.Admin, network: Network) -> Finding:
    check = f"admin {_format(admin.bind)}"
    error = try_bind(admin.bind)
    if error != errno.EADDRINUSE:
        return _bind_finding(check, admin.bind, error)
    if await _is_gateway(reachable(admin.bind), network):
        return warn(check, f"taken: {_RUNS}, and says that it is alive", *_remedy(admin.bind))
    return _taken(check, admin.bind, None)


def points_here(broker: Address, bind: Address) -> bool:
    """Return whether a broker's address is the listener's own address. No name is resolved, but
    `localhost`, 127.0.0.1 and ::1 count as one host."""
    if broker.port != bind.port:
        return False
    local = broker.host in _LOCAL
    return broker.host == bind.host or (local and (bind.host in _LOCAL or bind.host in _LOOPBACK))


# -- binding ---------------------------------------------------------------------------------


def try_bind(bind: Address) -> int:
    """Bind an address as a listener would, and close the socket again. Return 0 if that works,
    otherwise the `errno`.

    The socket does not listen, so no client can connect to it.
    """
    hosts = [bind.host] if bind.host else EVERYWHERE
    for number, host in enumerate(hosts):
        code = _bind(Address(host, bind.port))
        if code and not (number and code in _NO_IPV6):
            return code
    return 0


def _bind(address: Address) -> int:
    try:
        with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((address.host, address.port))
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _bind_finding(check: str, bind: Address, error: int) -> Finding:
    match error:
        case 0:
            return ok(check, "free" if bind.port else "any free port")
        case errno.EADDRNOTAVAIL:
            return fail(
                check,
                "this machine has no such address",
                f'Use one that it has, or ":{bind.port}" for all of them. Those it has:',
                "ip -brief address",
            )
        case errno.EACCES:
            return fail(
                check,
                "this user may not listen there: low ports are kept for the system",
                "Use a port from 1024 on, or give the service the capability "
                "(AmbientCapabilities=CAP_NET_BIND_SERVICE in systemd).",
            )
        case _:
            return fail(check, f"cannot be had: {os.strerror(error).lower()}", "Use another one.")


def _taken(check: str, bind: Address, spoken: Spoken | None) -> Finding:
    whose = "taken" if spoken is None else f"taken by something that {spoken.words}"
    return fail(
        check, f"{whose}; it is no gateway", "Use another port, or end who has it:", _ss(bind)
    )


def _remedy(bind: Address) -> tuple[str, str]:
    remedy = (
        "If it is this configuration's, all is well; a second one needs other ports. Who it is:"
    )
    return remedy, _ss(bind)


def _ss(bind: Address) -> str:
    return f"ss -ltnp 'sport = :{bind.port}'"


# -- probing ---------------------------------------------------------------------------------


def reachable(bind: Address) -> Address:
    """Return the address by which this machine reaches a listener. If the listener is bound to all
    addresses, it is a loopback address."""
    return Address(_LOOPBACK.get(bind.host, bind.host), bind.port)


async def _is_gateway(address: Address, network: Network) -> bool:
    """Return whether a gateway's admin listener answers."""
    sock = await network.connect(address)
    if isinstance(sock, Unreached):
        return False
    with trio.move_on_after(network.timeout), suppress(OSError, trio.BrokenResourceError):
        async with trio.SocketStream(trio.socket.from_stdlib_socket(sock)) as stream:
            await stream.send_all(_LIVEZ)
            return await _says_alive(stream)
    return False


async def _says_alive(stream: trio.SocketStream) -> bool:
    received = b""
    async for chunk in stream:
        received += chunk
        if len(received) > LARGEST_ANSWER:
            return False
    return received.startswith(b"HTTP/1.1 200") and b"\nalive\n" in received


def _format(bind: Address) -> str:
    return str(bind) if bind.host else f":{bind.port}"
