"""A Redis or Valkey for one test: on a free loopback port, without a disk."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.brokers.processes import end, spawn, tail

HOST = "127.0.0.1"
PROGRAMS = ("valkey-server", "redis-server")
READY_SECONDS = STOP_SECONDS = 60
"""For what takes less than a second on a machine that is not busy."""


def installed() -> str | None:
    """Return the path of an installed server."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def program() -> str:
    """Return the path of a server. Without one, skip the test, or fail it if `GATEWAY_REQUIRE`
    names one."""
    if found := installed():
        return found
    reason = "needs valkey-server or redis-server on the PATH"
    if set(PROGRAMS) & set(os.environ.get("GATEWAY_REQUIRE", "").split()):
        pytest.fail(f"{reason}, and GATEWAY_REQUIRE names one", pytrace=False)
    pytest.skip(reason)


class StoreServer:
    """`options` are those of the server's own command line; a change takes effect at the next
    start."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.log = directory / "store.log"
        self.port = 0
        self.options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    def start(self) -> None:
        """Start, on the same port as before, and return when the server answers."""
        self.port = self.port or free_port()
        command = [program(), "--bind", HOST, "--port", str(self.port), "--save", ""]
        self._process = spawn([*command, "--appendonly", "no", *self.options], self.log)
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            assert self._process.poll() is None, f"the store ended:\n{tail(self.log)}"
            assert time.monotonic() < deadline, f"the store is not ready:\n{tail(self.log)}"
            time.sleep(0.01)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            end(process, STOP_SECONDS)

    def freeze(self) -> None:
        """Stop the process without closing its connections."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ask(self, *words: str) -> str:
        """Return the first line of the server's answer to a command."""
        return self._answer(*words).partition("\r\n")[0]

    def keys(self, pattern: str) -> list[str]:
        """Return the names of all keys that match the pattern."""
        lines = self._answer("KEYS", pattern).splitlines()
        return [line for line in lines if line[0] not in "*$+"]

    def _answer(self, *words: str) -> str:
        """Return the raw answer to a command."""
        with socket.create_connection((HOST, self.port), timeout=READY_SECONDS) as connection:
            connection.sendall(f"{' '.join(words)}\r\nQUIT\r\n".encode())
            return connection.makefile("rb").read().decode()

    def _answers(self) -> bool:
        """Return True if the server answers, be it by a demand for a password."""
        try:
            return self.ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        port: int = listening.getsockname()[1]
        return port
