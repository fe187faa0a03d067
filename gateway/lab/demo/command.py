"""The `gateway demo` command: checks its requirements, then runs the demonstration."""

from __future__ import annotations

import math
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import trio

from gateway.errors import ConfigurationError
from gateway.lab.demo import ports
from gateway.lab.demo.children import ChildError
from gateway.lab.demo.plan import KAFKA, PULSAR
from gateway.lab.demo.terminal import foreground

PACKAGES = ("rich", "starlette")
"""Packages that the demonstration needs beyond the gateway's."""

CLIENTS = {PULSAR: "pulsar", KAFKA: "confluent_kafka"}
"""The package of the clients by protocol, which it needs too."""

REACH_SECONDS = 3.0
"""Time in which a given broker must accept a connection."""

FAILED = 1


def run(
    *,
    seconds: float | None,
    brokers: str | None,
    picture: Path | None,
    protocol: str = PULSAR,
) -> int:
    """Run `gateway demo` with these options. Return 0 if messages were received and all counts
    agree, else 1.

    Raises `ConfigurationError` if a package is missing, a port in use, or a broker unreachable.
    """
    selected = ports.read_ports(os.environ, protocol)
    _require_packages(protocol)
    _check_options(seconds, picture)
    _check_addresses(selected, brokers, protocol)

    try:
        # Imported after the check of its packages.
        from gateway.lab.demo.show import Settings, perform

        with foreground(os.environ):
            return trio.run(perform, Settings(selected, seconds, brokers, picture, protocol))
    except (BaseExceptionGroup, KeyboardInterrupt) as failure:
        return _report_failure(failure)


def _require_packages(protocol: str) -> None:
    missing = [name for name in (CLIENTS[protocol], *PACKAGES) if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"gateway demo needs packages that are not installed ({', '.join(missing)}). "
            "Install them with: pip install 'broker-gateway[lab]'; in a checkout: make run"
        )


def _check_options(seconds: float | None, picture: Path | None) -> None:
    if seconds is not None and not (0 < seconds < math.inf):
        raise ConfigurationError("--seconds is wrong: a number above 0")
    if picture is not None and not picture.parent.is_dir():
        raise ConfigurationError(f"--picture: there is no folder {picture.parent}")


def _check_addresses(selected: ports.Ports, brokers: str | None, protocol: str) -> None:
    if protocol == KAFKA:
        # Which ids real brokers have, and which topics, the demonstration cannot know.
        if brokers is not None:
            raise ConfigurationError(f"--brokers goes with --protocol {PULSAR}")
        ports.require_free(selected[:3] + selected.kafka_brokers)
        return
    if brokers is None:
        ports.require_free(selected)
        return
    addresses = ports.brokers(brokers)
    if any(address.tls for address in addresses):
        raise ConfigurationError("--brokers: there is no TLS to brokers yet; name a pulsar:// URL")
    ports.require_free(selected[:3])
    ports.require_reachable(addresses, REACH_SECONDS)


def _report_failure(failure: BaseException) -> int:
    """Print why the demonstration failed; raise the failure if it is a bug."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    if isinstance(failure, ChildError):
        print(failure, file=sys.stderr)  # noqa: T201
        return FAILED
    if isinstance(failure, OSError):  # a full disk or too many processes: no bug
        print(f"the demo cannot go on: {failure}", file=sys.stderr)  # noqa: T201
        return FAILED
    # Ctrl-C before anything started, or rich's reaction to a closed output.
    if isinstance(failure, KeyboardInterrupt | SystemExit):
        return FAILED
    raise failure from None
