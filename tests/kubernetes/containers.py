"""One container of a pod, as a process of this machine."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.api import Document
from tests.real.brokers.processes import spawn

BACKOFF_S = 10.0
"""Before a container starts for the third time, as kubelets wait; the second time is at once."""


@dataclass(slots=True)
class Probe:
    """A probe by HTTP. `failures`: in a row. `due`: when it is asked next."""

    url: str
    period: float
    timeout: float
    threshold: int
    failures: int = 0
    due: float = 0.0

    @classmethod
    def of(cls, container: Document, name: str, host: str) -> Probe | None:
        """Return a probe of a container, if it has it."""
        found = container.get(name)
        if found is None:
            return None
        asked = found["httpGet"]
        port = asked["port"]
        if isinstance(port, str):
            (port,) = (it["containerPort"] for it in container["ports"] if it["name"] == port)
        times = found["periodSeconds"], found["timeoutSeconds"], found["failureThreshold"]
        return cls(f"http://{host}:{port}{asked['path']}", *times)

    def ask(self, now: float) -> bool | None:
        """Return whether it succeeds; None if it is not due."""
        if now < self.due:
            return None
        self.due = now + self.period
        good = False
        with suppress(OSError), urllib.request.urlopen(self.url, timeout=self.timeout) as answer:
            good = answer.status == 200
        self.failures = 0 if good else self.failures + 1
        return good

    @property
    def has_failed(self) -> bool:
        return self.failures >= self.threshold


class Container:
    """A container. `is_started`: its startup probe has succeeded. `restarts`: starts after the
    first. `was_killed`: by SIGKILL, for it did not end within its grace period, or was not well."""

    def __init__(
        self,
        spec: Document,
        host: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        self.name: str = spec["name"]
        self.log = log
        self.is_started = self.is_ready = self.was_killed = False
        self.restarts = -1
        self._spec = spec
        self._host = host
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = 0.0
        self._probes: dict[str, Probe] = {}

    def start(self) -> None:
        """Start it, or start it again."""
        self.restarts += 1
        self._begun = time.monotonic()
        self.is_started = self.is_ready = False
        found = {it: Probe.of(self._spec, it, self._host) for it in
                 ("startupProbe", "livenessProbe", "readinessProbe")}  # fmt: skip
        self._probes = {name: it for name, it in found.items() if it}
        self._process = spawn(self._command, self.log, self._environment)

    @property
    def exit_code(self) -> int | None:
        """Return how its process has ended; None: it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def may_start_again(self) -> bool:
        wait = 0.0 if self.restarts == 0 else BACKOFF_S
        return time.monotonic() >= self._begun + wait

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def look(self) -> None:
        """Ask the probes that are due; kill a process that is not well."""
        if self.exit_code is not None:
            self.is_ready = False
            return
        now = time.monotonic()
        if not self.is_started:
            startup = self._probes.get("startupProbe")
            self.is_started = startup is None or bool(startup.ask(now))
            if startup and startup.has_failed:
                self._kill()
            return
        live, ready = self._probes.get("livenessProbe"), self._probes.get("readinessProbe")
        if live:
            live.ask(now)
            if live.has_failed:
                self._kill()
        if ready is None or ready.ask(now):
            self.is_ready = True
        elif ready.has_failed:
            self.is_ready = False

    def stop(self, until: float) -> None:
        """End it in good order, or by SIGKILL at a moment."""
        if self._process is None or self.exit_code is not None:
            return
        hook = self._spec.get("lifecycle", {}).get("preStop", {})
        time.sleep(min(hook.get("sleep", {}).get("seconds", 0), max(0.0, until - time.monotonic())))
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill()
        self.is_ready = False

    def _kill(self) -> None:
        assert self._process is not None
        self.was_killed = True
        self._process.kill()
        self._process.wait()
