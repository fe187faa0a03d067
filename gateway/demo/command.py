"""The `gateway demo` command: looks whether everything is there, then lets the show begin."""

from __future__ import annotations

import math
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import trio

from gateway.demo import ports
from gateway.demo.children import ChildError
from gateway.demo.terminal import foreground
from gateway.errors import ConfigurationError

PACKAGES = ("pulsar", "rich")
"""What the demo needs beyond the gateway."""

REACH_SECONDS = 3.0
"""For a given broker to accept a connection."""

FAILED = 1


def run(*, seconds: float | None, brokers: str | None, picture: Path | None) -> int:
    """Run the demo; answers the exit status: 0 where messages made the round trip and all counts
    agree, else 1.

    Raises `ConfigurationError` where it cannot begin: a package that is missing, a port in use, a
    broker that cannot be reached.
    """
    chosen = ports.chosen(os.environ)
    _require_packages()
    _require_sense(seconds, picture)
    _require_room(chosen, brokers)

    try:
        # Imported only now that its packages are known to be there.
        from gateway.demo.show import Settings, perform

        with foreground(os.environ):
            return trio.run(perform, Settings(chosen, seconds, brokers, picture))
    except (BaseExceptionGroup, KeyboardInterrupt) as failure:
        return _explained(failure)


def _require_packages() -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the demo needs packages that are not here ({', '.join(missing)}): "
            "`make run` installs them in a checkout; elsewhere: pip install pulsar-client rich"
        )


def _require_sense(seconds: float | None, picture: Path | None) -> None:
    if seconds is not None and not (0 < seconds < math.inf):
        raise ConfigurationError("--seconds is wrong: a number above 0")
    if picture is not None and not picture.parent.is_dir():
        raise ConfigurationError(f"--picture: there is no folder {picture.parent}")


def _require_room(chosen: ports.Ports, brokers: str | None) -> None:
    if brokers is None:
        ports.require_free(chosen)
        return
    addresses = ports.brokers(brokers)
    if any(address.tls for address in addresses):
        raise ConfigurationError("--brokers: there is no TLS to brokers yet; name a pulsar:// URL")
    ports.require_free(chosen[:2])
    ports.require_reachable(addresses, REACH_SECONDS)


def _explained(failure: BaseException) -> int:
    """Say why the demo failed, where that is something to say; raises what is a bug."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    if isinstance(failure, ChildError):
        print(failure, file=sys.stderr)  # noqa: T201
        return FAILED
    if isinstance(failure, OSError):  # a full disk, no more processes: nothing of ours
        print(f"the demo cannot go on: {failure}", file=sys.stderr)  # noqa: T201
        return FAILED
    # Ctrl-C before anything started; and rich's word for output that nobody reads any more.
    if isinstance(failure, KeyboardInterrupt | SystemExit):
        return FAILED
    raise failure from None
