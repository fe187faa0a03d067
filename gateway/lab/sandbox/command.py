"""`gateway sandbox`: the sandbox as a process of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import trio

from gateway.errors import ConfigurationError
from gateway.lab.sandbox.opening import SERVER_VERSION
from gateway.lab.sandbox.server import Sandbox, SandboxSettings, first_of, report
from gateway.system.signals import STOP, received
from gateway.wire.address import Address, parse_address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_BROKERS = 16
"""One process uses one core, so more brokers show nothing that two do not."""

_ANY_PORT = ":0"


def run(
    *, brokers: str, control: str, token_secret: Path | None, proxy_roles: Sequence[str]
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status. Raises `ConfigurationError`."""
    settings = SandboxSettings(
        brokers=_addresses(brokers),
        control=_address(control, "--control"),
        token_secret=token_secret,
        proxy_roles=tuple(proxy_roles),
    )
    sandbox = Sandbox(settings)
    try:
        trio.run(_serve, sandbox)
    except ExceptionGroup as failures:
        mistake = first_of(failures)
        if isinstance(mistake, ConfigurationError):
            raise mistake from None
        raise
    return 0


async def _serve(sandbox: Sandbox) -> None:
    async with received(*STOP) as signals, trio.open_nursery() as nursery:
        await nursery.start(sandbox.serve)
        _announce(sandbox)
        async for _ in signals:
            nursery.cancel_scope.cancel()


def _announce(sandbox: Sandbox) -> None:
    """Announce the addresses. Programs read the first line of standard output: keep its form."""
    report(f"{SERVER_VERSION}: brokers in memory, for trials and tests; nothing is kept on disk")
    sys.stdout.write(
        f"sandbox ready {sandbox.service_url} control {sandbox.control_url}\n"
        f"Topics to move and faults to cause: curl {sandbox.control_url}/\n"
    )
    sys.stdout.flush()


def _addresses(text: str) -> tuple[Address, ...]:
    parts = text.removeprefix("pulsar://").split(",")
    if len(parts) > MOST_BROKERS:
        raise ConfigurationError(f"--brokers names {len(parts)}; {MOST_BROKERS} are the most")
    return tuple(_address(part.strip(), "--brokers") for part in parts)


def _address(text: str, option: str) -> Address:
    """Read `host:port`, where port 0 is any free port."""
    host = text.removesuffix(_ANY_PORT)
    try:
        address = parse_address(host, 6650)
    except ValueError as why:
        raise ConfigurationError(f"{option}: {why}. Write for example 127.0.0.1:16650") from None
    return address if host == text else address._replace(port=0)
