"""Network access of the checks: resolving names, connecting, and detecting TLS. Each of these steps
is bounded in time.

A step takes at most `timeout` seconds, so that a silent peer cannot keep the user waiting. Steps of
different checks run concurrently.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeVar

import trio

from gateway.brokers.health import connect, look_up
from gateway.brokers.resolver import LookUp
from gateway.doctor.finding import Finding, fail
from gateway.wire.address import Address

T = TypeVar("T")

LONGEST_TIMEOUT = 3.0
"""Seconds for one step: a lost SYN is resent after 1 s, so this covers two losses."""

TLS_SECONDS = 1.0
"""Seconds for the first record of a handshake, which a TLS server sends at once."""

MOST_ADDRESSES = 16
"""Per name. A name with more belongs to a balancer, behind which answers do not differ."""


@dataclass(frozen=True, slots=True)
class Unreached:
    """A failed attempt to connect. `code`: the `errno`; None: there was no response in time."""

    code: int | None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The result of resolving a host. `ips`: the IP addresses, in the order in which to try them;
    empty if there is an `error`. `others`: how many IP addresses were left out. `seconds`: how long
    resolving took."""

    ips: tuple[str, ...]
    seconds: float
    error: str = ""
    others: int = 0


def is_literal(host: str) -> bool:
    """Return whether the host is an IP address, not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Network:
    """Network access of the checks. `timeout`: seconds for one step. `look_up`: resolves a name to
    IP addresses."""

    timeout: float = LONGEST_TIMEOUT
    look_up: LookUp = look_up

    async def resolve(self, host: str) -> Resolved:
        """Resolve a host. If the host is an IP literal, the result is this address."""
        began = trio.current_time()
        ips, error = await self._look_up_addresses(host)
        seconds = trio.current_time() - began
        return Resolved(ips[:MOST_ADDRESSES], seconds, error, max(0, len(ips) - MOST_ADDRESSES))

    async def _look_up_addresses(self, host: str) -> tuple[tuple[str, ...], str]:
        if is_literal(host):
            return (host,), ""
        with trio.move_on_after(self.timeout):
            try:
                return tuple(dict.fromkeys(await self.look_up(host))), ""
            except (OSError, UnicodeError) as error:
                return (), str(getattr(error, "strerror", None) or error).lower()
        return (), "the name server does not answer"

    async def connect(self, address: Address) -> socket.socket | Unreached:
        """Connect to an address whose host is an IP literal. Return the socket, or why there is
        none."""
        with trio.move_on_after(self.timeout):
            try:
                return await connect(address)
            except OSError as error:
                return Unreached(error.errno or errno.EIO)
        return Unreached(None)

    async def speaks_tls(self, address: Address) -> bool:
        """Return whether a peer responds to a TLS ClientHello with a record of a TLS handshake."""
        sock = await self.connect(address)
        if isinstance(sock, Unreached):
            return False
        with sock, trio.move_on_after(min(self.timeout, TLS_SECONDS)), suppress(OSError):
            sock.send(_client_hello())  # some hundred bytes: a new connection accepts them at once
            await trio.lowlevel.wait_readable(sock)
            return sock.recv(2) == b"\x16\x03"
        return False


def _client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without roots: verifies nothing
    sent = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake does not end with its first message")


async def run_all(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Call all functions concurrently; return their results in the order of the calls."""
    results: dict[int, T] = {}

    async def keep(number: int, call: Callable[[], Awaitable[T]]) -> None:
        results[number] = await call()

    async with trio.open_nursery() as nursery:
        for number, call in enumerate(calls):
            nursery.start_soon(keep, number, call)
    return [results[number] for number in range(len(calls))]


# -- findings --------------------------------------------------------------------------------


def judge_unreached(check: str, address: Address, code: int | None) -> Finding:
    """Return the finding about a failed attempt to connect. `code`: the `errno`; None: no
    response."""
    name = errno.errorcode.get(code or 0, "unknown error")
    other = f"cannot be connected to: {name}", _NO_ROUTE_REMEDY
    reason, remedy = _UNREACHED.get(code, other)
    return fail(check, reason, remedy.format(port=address.port))


_NO_ROUTE_REMEDY = "See that this machine has a way to the broker's network."

_UNREACHED = {
    errno.ECONNREFUSED: (
        "refuses connections: nothing listens there",
        "See that the broker is up, and that it listens on port {port}.",
    ),
    errno.EHOSTUNREACH: ("cannot be reached: no route to the host", _NO_ROUTE_REMEDY),
    errno.ENETUNREACH: ("cannot be reached: this machine has no such network", _NO_ROUTE_REMEDY),
    None: (
        "does not answer",
        "A firewall or a network policy drops what is sent to port {port}, or the host is down.",
    ),
}
