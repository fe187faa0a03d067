"""Virtual environments with nothing but the package, and gateways that are started from them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import spawn, tail

HOST = "127.0.0.1"
START_S = 60
STOP_S = 30
COMMAND_S = 120
INSTALL_S = 900

CONFIGURATION = """\
version: 1
listeners: [{{name: clients, bind: "127.0.0.1:{clients}", cluster: main}}]
clusters: {{main: {{brokers: "pulsar://127.0.0.1:16650"}}}}
admin: {{bind: "127.0.0.1:{admin}"}}
deadlines: {{grace: 1s}}
"""
"""Of a gateway that needs nothing; whether there is a broker is not what tests here ask."""


def clean() -> dict[str, str]:
    """Return the environment of this process without what leads Python to other packages."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "GATEWAY_CONFIG")
    }


def run(
    command: Sequence[object],
    folder: Path,
    patience: float = COMMAND_S,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command, of texts and paths, in a folder, and return what it says. Fails the test if
    it fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=clean() | dict(environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


RULES = """\
version: 1
rules: [{id: tenants, limit: {publish: {messages: 5000/s}}, per: tenant}]
"""


class Serving(NamedTuple):
    """A gateway that runs."""

    health: str
    """The URL that a health check asks."""


def configured(folder: Path, more: str = "") -> tuple[Path, Serving]:
    """Write a configuration with ports that are free, and `rules.yaml` beside it; `more` is added
    to the configuration."""
    clients, admin = free_ports(HOST, 2)
    (folder / "rules.yaml").write_text(RULES)
    path = folder / "gateway.yaml"
    path.write_text(CONFIGURATION.format(clients=clients, admin=admin) + more)
    return path, Serving(f"http://{HOST}:{admin}/livez")


@contextmanager
def serving(command: Sequence[str], folder: Path, at: Serving) -> Iterator[None]:
    """Run a gateway until it is asked to stop, which it has to do in good order."""
    log = folder / "gateway.log"
    process = spawn(command, log, clean())
    try:
        deadline = time.monotonic() + START_S
        while not _answers(at.health):
            assert process.poll() is None, tail(log)
            assert time.monotonic() < deadline, tail(log)
            time.sleep(0.05)
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_S) == 0, tail(log)
        assert "Traceback" not in log.read_text(errors="replace"), tail(log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.read() == b"alive\n")
    except OSError:
        return False
