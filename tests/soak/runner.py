"""The gateway process of a soak, and what is known of it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gateway.wire.contract import EndReason
from tests.bench.machine import descriptors, memory
from tests.hostile.peers import HOST, PATIENCE
from tests.hostile.process import CHECKOUT, Ends, Metrics, until
from tests.real.brokers.ports import free_ports
from tests.real.brokers.processes import end, spawn, tail

LISTENERS = "passing", "verifying"
"""One where the broker judges credentials, one where the gateway does."""

CHUNK = 512 * 1024
"""The most that one receive of the plane takes: its default."""

WAITS = 6
"""How often the patience of other tests must be over."""

SPARE = 200
"""Descriptors of a process that are not pairs'."""


T = TypeVar("T")


class BrokenClaimError(Exception):
    """What was to be shown is not so."""


def claim(holds: bool, text: str) -> None:
    """Raises `BrokenClaimError`."""
    if not holds:
        raise BrokenClaimError(text)


def in_time(reached: Callable[[], T]) -> T | None:
    """Wait until something is so: longer than other tests, for the machine may have much to do."""
    return next((found for _ in range(WAITS) if (found := until(reached))), None)


def possible_pairs() -> int:
    """As many as the descriptors of one process allow, two for each."""
    return (descriptors() - SPARE) // 2


@dataclass(frozen=True, slots=True)
class Told:
    """What the process tells from within since it was asked before; see `watched`."""

    peak: int
    blocks: int
    step: float
    pauses: list[dict[str, float]]


class Gateway:
    """One process in front of some brokers. `settings` are merged into its configuration."""

    def __init__(
        self,
        folder: Path,
        brokers: Sequence[str],
        settings: dict[str, Any] | None = None,
        collector: str = "as it is",
    ) -> None:
        *ports, admin = free_ports(HOST, len(LISTENERS) + 1)
        self.ports = dict(zip(LISTENERS, ports, strict=True))
        self.log = folder / "gateway.log"
        self._metrics_url = f"http://{HOST}:{admin}/metrics"
        self._report = folder / "report.json"
        self._written = 0
        file, secret = folder / "gateway.yaml", folder / "secret"
        secret.write_bytes(secrets.token_bytes(32))
        file.write_text(yaml.safe_dump(self._settings(brokers, admin, secret) | (settings or {})))
        command = [sys.executable, "-m", "tests.soak.watched", str(self._report), collector]
        self._process = spawn(
            [*command, "run", str(file)], self.log, os.environ | {"PYTHONPATH": str(CHECKOUT)}
        )
        assert in_time(self._is_ready), f"the gateway did not start:\n{tail(self.log)}"

    def _settings(self, brokers: Sequence[str], admin: int, secret: Path) -> dict[str, Any]:
        token = {"secret_file": str(secret)}
        kinds: dict[str, Any] = {
            "passing": {},
            "verifying": {"identity": {"mode": "verify", "token": token}},
        }
        return {
            "version": 1,
            "listeners": [
                {"name": name, "bind": f"{HOST}:{port}", "cluster": "main"} | kinds[name]
                for name, port in self.ports.items()
            ],
            "clusters": {"main": {"brokers": "pulsar://" + ",".join(brokers)}},
            "admin": {"bind": f"{HOST}:{admin}"},
            "limits": {"connections": possible_pairs() + SPARE},
            "deadlines": {"grace": "0s"},
            "log": {"level": "warning"},  # else a line for each of a million connections
        }

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, f"the gateway ended:\n{tail(self.log)}"
        with suppress(OSError):
            return self.metrics().healthy_brokers > 0
        return False

    # -- what is known of it -------------------------------------------------------------------

    def metrics(self) -> Metrics:
        """All of them, right now."""
        with urllib.request.urlopen(self._metrics_url, timeout=6 * PATIENCE) as answer:
            return Metrics(answer.read().decode())

    def connections(self) -> int:
        """In all states, on all listeners."""
        metrics = self.metrics()
        return int(sum(metrics.connections(name) for name in LISTENERS))

    def ended(self) -> Ends:
        """How many connections ended on all listeners, by reason."""
        metrics = self.metrics()
        return sum((metrics.ended(name) for name in LISTENERS), Counter[EndReason]())

    @property
    def rss(self) -> int:
        """Resident bytes."""
        return memory(self._process.pid)["Rss"]

    @property
    def descriptors(self) -> int:
        """Open ones."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208

    def has_descriptors(self, number: int) -> bool:
        """So many at last; one of a scrape may have been open a moment ago, and closed now."""
        return bool(in_time(lambda: abs(self.descriptors - number) <= 1))

    def told(self) -> Told:
        """What it tells from within since it was asked before."""
        return self._asked(signal.SIGUSR1)

    def set_collector(self) -> None:
        """As it was named at the start. All is counted from new."""
        self._asked(signal.SIGUSR2)

    def hang_up(self) -> None:
        """Have its rules read again."""
        self._process.send_signal(signal.SIGHUP)

    def _asked(self, how: signal.Signals) -> Told:
        self._process.send_signal(how)
        self._written += 1
        told = in_time(self._new_report)
        assert told, "the gateway did not answer"
        return Told(told["peak"], told["blocks"], told["step"], told["pauses"])

    def _new_report(self) -> dict[str, Any] | None:
        with suppress(OSError):
            told: dict[str, Any] = json.loads(self._report.read_text())
            return told if told["written"] == self._written else None
        return None

    def is_at_rest(self) -> bool:
        """No connection, no byte that waits, and no other descriptor than one of them."""
        return self.connections() == 0 and self.metrics().buffered == 0

    def stop(self) -> None:
        """Ends in good order, and has said of no bug."""
        status = end(self._process, WAITS * PATIENCE)
        log = self.log.read_text(errors="replace")
        for bug in ("Traceback", "internal_error"):
            assert bug not in log, log[-5000:]
        assert status == 0, f"{status}: {log[-5000:]}"


@contextmanager
def running(
    folder: Path,
    brokers: Sequence[str],
    settings: dict[str, Any] | None = None,
    collector: str = "as it is",
) -> Iterator[Gateway]:
    """A gateway for the length of a block."""
    gateway = Gateway(folder, brokers, settings, collector)
    try:
        yield gateway
    finally:
        gateway.stop()
