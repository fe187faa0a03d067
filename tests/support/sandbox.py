"""The sandbox as its users start it: a process that prints where it listens."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.real.brokers.processes import end, spawn, tail

CHECKOUT = Path(__file__).resolve().parents[2]
HOSTS = ("127.0.0.80", "127.0.0.81")
"""No other process uses these: a client that reads one has it from this sandbox."""
CONTROL_HOST = "127.0.0.1"
READY_SECONDS = STOP_SECONDS = REQUEST_SECONDS = 120
"""For what takes a second on a machine that is not busy."""

READY_LINE = re.compile(r"^sandbox ready (pulsar://\S+) control (http://\S+)$", re.MULTILINE)


class Sandbox:
    """Two brokers in one process. `directory` takes its log; `options` are further command
    options."""

    max_message_size = 5 * 1024 * 1024

    def __init__(self, directory: Path, *options: str) -> None:
        self.log = directory / "sandbox.log"
        self.service_url = self.control_url = ""
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def traces(self) -> tuple[str, ...]:
        """Return texts that reveal a broker."""
        return (*HOSTS, *(f":{url.rpartition(':')[2]}" for url in self.urls))

    @property
    def urls(self) -> list[str]:
        """Return the URL of each single broker."""
        addresses = self.service_url.removeprefix("pulsar://").split(",")
        return [f"pulsar://{address}" for address in addresses]

    # -- for tests -----------------------------------------------------------------------------

    def create_partitioned(self, topic: str, partitions: int) -> None:
        self._ask("topics", name=topic, partitions=str(partitions))

    def unload(self, topic: str, *, assigned: bool = False) -> None:
        """Move a topic, or all partitions of one, to the other broker. With `assigned`, clients are
        told which one that is."""
        self._ask("move", topic=topic, assigned=str(assigned).lower())

    def fault(self, broker: int, kind: str, seconds: float = 0) -> None:
        """Let one broker misbehave."""
        self._ask("fault", broker=str(broker), kind=kind, seconds=str(seconds))

    def say(self, broker: int, frame: bytes, to: str = "") -> None:
        """Let one broker send a frame to all its clients, or in answer to each command of a kind,
        until called with an empty frame."""
        self._ask("say", broker=str(broker), frame=frame.hex(), **({"to": to} if to else {}))

    def topics(self) -> dict[str, Any]:
        """Return all topics by full name; of a partitioned topic its partitions."""
        with urllib.request.urlopen(f"{self.control_url}/topics", timeout=REQUEST_SECONDS) as it:
            found = json.load(it)
        assert isinstance(found, dict)
        return found

    def backlog(self, topic: str, subscription: str) -> int:
        """Return the number of entries that a subscription has not acknowledged."""
        found = self.topics()[topic]["backlog"][subscription]
        assert isinstance(found, int)
        return found

    def subscriptions(self, topic: str) -> set[str]:
        """Return the names of a topic's subscriptions."""
        return set(self.topics()[topic]["backlog"])

    def _ask(self, what: str, **how: str) -> None:
        """Send a control request. Raises HTTPError if it is refused."""
        call = urllib.request.Request(f"{self.control_url}/{what}?{urlencode(how)}", method="POST")
        with urllib.request.urlopen(call, timeout=REQUEST_SECONDS):
            pass

    # -- starting and stopping -----------------------------------------------------------------

    def start(self) -> None:
        """Return when the sandbox serves; fail with its log otherwise."""
        brokers = ",".join(f"{host}:0" for host in HOSTS)
        command = [sys.executable, "-m", "gateway", "sandbox", "--brokers", brokers]
        command += ["--control", f"{CONTROL_HOST}:0", *self._options]
        self._process = spawn(command, self.log, os.environ | {"PYTHONPATH": str(CHECKOUT)})
        try:
            self.service_url, self.control_url = self._addresses(time.monotonic() + READY_SECONDS)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _addresses(self, deadline: float) -> tuple[str, str]:
        assert self._process is not None
        while not (line := READY_LINE.search(self.log.read_text(errors="replace"))):
            assert self._process.poll() is None, f"the sandbox ended:\n{tail(self.log)}"
            assert time.monotonic() < deadline, f"the sandbox is not ready:\n{tail(self.log)}"
            time.sleep(0.02)
        return line[1], line[2]

    def stop(self) -> None:
        """Stop the sandbox, and assert that it exits in good order."""
        process, self._process = self._process, None
        if process is None:
            return
        code = end(process, STOP_SECONDS)
        assert code == 0, f"the sandbox ended with {code}:\n{tail(self.log)}"
        assert "Traceback" not in self.log.read_text(errors="replace"), tail(self.log)
