"""`gateway sandbox --protocol kafka`: the sandbox as a process of its own."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.lab.kafka.server import KafkaSandbox, KafkaSettings
from gateway.lab.process import addresses, report, serve_until_stopped

if TYPE_CHECKING:
    from pathlib import Path

PORT = 9092
"""The port of an address that names none: the default of brokers."""

MOST_USERS_BYTES = 1024 * 1024
"""Of the file of users: some ten thousand."""


def run(*, brokers: str, users: Path | None, unsecured_tokens: bool) -> int:
    """Run a Kafka sandbox at the addresses `brokers` until SIGTERM or SIGINT; return the
    exit status. `users`: see `read_users`. Raises `ConfigurationError`."""
    settings = KafkaSettings(
        brokers=addresses(brokers, "kafka", PORT),
        users={} if users is None else read_users(users),
        unsecured_tokens=unsecured_tokens,
    )
    sandbox = KafkaSandbox(settings)
    return serve_until_stopped(sandbox.serve, partial(_announce, sandbox))


def read_users(path: Path) -> dict[str, str]:
    """Read a file of lines `name:password`. Return the passwords by user name. Empty lines and
    lines that begin with # are skipped. Raises `ConfigurationError`, whose text quotes no line of
    the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_USERS_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > MOST_USERS_BYTES:
        raise ConfigurationError(f"{path} has more than {MOST_USERS_BYTES} bytes")
    users: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.strip().partition(":")
        if not (name and colon and password):
            raise ConfigurationError(f"{path}, line {number}, is not name:password")
        if name in users:
            raise ConfigurationError(f"{path}, line {number}, has a name that is there before")
        users[name] = password
    if not users:
        raise ConfigurationError(f"{path} names nobody; write lines of name:password")
    return users


def _announce(sandbox: KafkaSandbox) -> None:
    """Announce the addresses. Programs read the first line of standard output: keep its form."""
    report("Kafka brokers in memory, for trials and tests; nothing is kept on disk")
    sys.stdout.write(f"sandbox ready {sandbox.service_url}\n")
    sys.stdout.flush()
