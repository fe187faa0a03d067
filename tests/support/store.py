"""A Redis or Valkey of a test's own: on a free port of loopback, in memory alone."""

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
READY_SECONDS = 10
STOP_SECONDS = 5


def installed() -> str | None:
    """Where one is."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def program() -> str:
    """Where there is none the test is skipped; where `GATEWAY_REQUIRE` names one, it fails."""
    if found := installed():
        return found
    reason = "needs valkey-server or redis-server on the PATH"
    if set(PROGRAMS) & set(os.environ.get("GATEWAY_REQUIRE", "").split()):
        pytest.fail(f"{reason}, and GATEWAY_REQUIRE names one", pytrace=False)
    pytest.skip(reason)


class StoreServer:
    """`options` are those of the server's own command line; other ones take a start."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.log = directory / "store.log"
        self.port = 0
        self.options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    def start(self) -> None:
        """Where it was before, if it was; returns when it answers."""
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
        """It is there, and says nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ask(self, *words: str) -> str:
        """The first line of its answer to a command."""
        return self._answer(*words).partition("\r\n")[0]

    def keys(self, pattern: str) -> list[str]:
        """The names of all keys like this one."""
        lines = self._answer("KEYS", pattern).splitlines()
        return [line for line in lines if line[0] not in "*$+"]

    def _answer(self, *words: str) -> str:
        """To a command, as the protocol has it."""
        with socket.create_connection((HOST, self.port), timeout=READY_SECONDS) as connection:
            connection.sendall(f"{' '.join(words)}\r\nQUIT\r\n".encode())
            return connection.makefile("rb").read().decode()

    def _answers(self) -> bool:
        """That it wants a password is an answer, too."""
        try:
            return self.ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        port: int = listening.getsockname()[1]
        return port
