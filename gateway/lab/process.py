"""What the sandbox processes of all protocols share: addresses, listeners, and how they end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import trio

from gateway.errors import ConfigurationError
from gateway.system.signals import STOP, received
from gateway.wire.address import Address, parse_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Serve = Callable[..., Awaitable[object]]
    """A task as `Nursery.start` starts it: it reports when it has started."""

MOST_BROKERS = 16
"""One process uses one core, so more brokers show nothing that two do not."""

ANYWHERE = Address("127.0.0.1", 0)
"""A loopback address with any free port."""

_ANY_PORT = ":0"


def addresses(text: str, scheme: str, default_port: int) -> tuple[Address, ...]:
    """Return the addresses in `text`, the value of the option --brokers. Raises
    `ConfigurationError`."""
    parts = text.removeprefix(f"{scheme}://").split(",")
    if len(parts) > MOST_BROKERS:
        raise ConfigurationError(f"--brokers names {len(parts)}; {MOST_BROKERS} are the most")
    return tuple(address(part.strip(), "--brokers", default_port) for part in parts)


def address(text: str, option: str, default_port: int) -> Address:
    """Return the address in a text `host:port`, in which port 0 means any free port. Raises
    `ConfigurationError`, whose text contains the name `option`."""
    host = text.removesuffix(_ANY_PORT)
    try:
        parsed = parse_address(host, default_port)
    except ValueError as why:
        example = f"Write for example 127.0.0.1:1{default_port}"
        raise ConfigurationError(f"{option}: {why}. {example}") from None
    return parsed if host == text else parsed._replace(port=0)


async def listen(address: Address) -> trio.SocketListener:
    """Return a TCP listener at an address. Raises `ConfigurationError` if that fails."""
    try:
        listeners = await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            f"cannot listen on {address}: {reason}; end what listens there, "
            "or name other ports (0 is any)"
        ) from None
    for spare in listeners[1:]:  # a host name may have several addresses: one is enough
        await spare.aclose()
    return listeners[0]


def bound(listener: trio.SocketListener) -> Address:
    """Return the address at which a listener accepts connections, with the real port."""
    host, port, *_ = listener.socket.getsockname()
    return Address(host, port)


def serve_until_stopped(serve: Serve, announce: Callable[[], None]) -> int:
    """Run `serve` until SIGTERM or SIGINT; return the exit status. `announce` is called when
    `serve` has started. Raises `ConfigurationError`."""
    try:
        trio.run(_serve, serve, announce)
    except ExceptionGroup as failures:
        mistake = first_of(failures)
        if isinstance(mistake, ConfigurationError):
            raise mistake from None
        raise
    return 0


async def _serve(serve: Serve, announce: Callable[[], None]) -> None:
    async with received(*STOP) as signals, trio.open_nursery() as nursery:
        await nursery.start(serve)
        announce()
        async for _ in signals:
            nursery.cancel_scope.cancel()


def first_of(error: BaseException) -> BaseException:
    """Return the first exception in an exception group; if the first one is a group too, the first
    in that group. Return any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def report(text: str) -> None:
    """Write a line to standard error, because a sandbox has no structured log."""
    printable = "\n".join(line if line.isprintable() else ascii(line) for line in text.splitlines())
    sys.stderr.write(f"sandbox: {printable}\n")
