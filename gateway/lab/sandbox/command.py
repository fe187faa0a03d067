"""`gateway sandbox`: the sandbox as a process of its own."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from gateway.lab.process import address, addresses, report, serve_until_stopped
from gateway.lab.sandbox.opening import SERVER_VERSION
from gateway.lab.sandbox.server import Sandbox, SandboxSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PORT = 6650
"""The port of an address that names none: the default of brokers."""


def run(
    *, brokers: str, control: str, token_secret: Path | None, proxy_roles: Sequence[str]
) -> int:
    """Run a Pulsar sandbox until SIGTERM or SIGINT; return the exit status. Raises
    `ConfigurationError`."""
    settings = SandboxSettings(
        brokers=addresses(brokers, "pulsar", PORT),
        control=address(control, "--control", PORT),
        token_secret=token_secret,
        proxy_roles=tuple(proxy_roles),
    )
    sandbox = Sandbox(settings)
    return serve_until_stopped(sandbox.serve, partial(_announce, sandbox))


def _announce(sandbox: Sandbox) -> None:
    """Announce the addresses. Programs read the first line of standard output: keep its form."""
    report(f"{SERVER_VERSION}: brokers in memory, for trials and tests; nothing is kept on disk")
    sys.stdout.write(
        f"sandbox ready {sandbox.service_url} control {sandbox.control_url}\n"
        f"Topics to move and faults to cause: curl {sandbox.control_url}/\n"
    )
    sys.stdout.flush()
