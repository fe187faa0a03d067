"""The gateway process of a soak, and the figures about it."""

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
from tests.support.certificates import CertificateAuthority, Wanted

LISTENERS = "passing", "verifying", "secured"
"""A listener where the broker checks credentials, one where the gateway does, and one with TLS."""

CHUNK = 512 * 1024
"""The most that one receive of the data plane takes: its default."""

WAITS = 6
"""Multiple of other tests' patience."""

SPARE = 200
"""Descriptors of a process beside those of pairs."""


T = TypeVar("T")


class BrokenClaimError(Exception):
    """A claim does not hold."""


def claim(holds: bool, text: str) -> None:
    """Raise `BrokenClaimError` unless the claim holds."""
    if not holds:
        raise BrokenClaimError(text)


def in_time(reached: Callable[[], T]) -> T | None:
    """Wait until `reached()` is true: longer than other tests, since the machine may be busy."""
    return next((found for _ in range(WAITS) if (found := until(reached))), None)


def possible_pairs() -> int:
    """Return the number of pairs that one process's descriptors allow, two for each."""
    return (descriptors() - SPARE) // 2


@dataclass(frozen=True, slots=True)
class Report:
    """What the process reports from within since the last report; see `watched`."""

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
        self.admin = f"{HOST}:{admin}"
        self._report = folder / "report.json"
        self._written = 0
        file, secret = folder / "gateway.yaml", folder / "secret"
        secret.write_bytes(secrets.token_bytes(32))
        self.pair = CertificateAuthority().issue(Wanted([HOST])).written(folder, "secured")
        file.write_text(yaml.safe_dump(self._settings(brokers, admin, secret) | (settings or {})))
        command = [sys.executable, "-m", "tests.soak.watched", str(self._report), collector]
        self._process = spawn(
            [*command, "run", str(file)], self.log, os.environ | {"PYTHONPATH": str(CHECKOUT)}
        )
        assert in_time(self._is_ready), f"the gateway did not start:\n{tail(self.log)}"

    def _settings(self, brokers: Sequence[str], admin: int, secret: Path) -> dict[str, Any]:
        token = {"secret_file": str(secret)}
        pair = self.pair
        shown = {"certificate_file": str(pair.certificate), "key_file": str(pair.key)}
        kinds: dict[str, Any] = {
            "passing": {},
            "verifying": {"identity": {"mode": "verify", "token": token}},
            "secured": {"tls": {"certificates": [shown]}},
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
            "log": {"level": "warning"},  # else it writes a line for each of a million connections
        }

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, f"the gateway ended:\n{tail(self.log)}"
        with suppress(OSError):
            return self.metrics().healthy_brokers > 0
        return False

    # -- observations --------------------------------------------------------------------------

    def metrics(self) -> Metrics:
        """Return all metrics as of now, except those of topics."""
        return Metrics(self.page("/metrics"))

    def page(self, path: str) -> str:
        """Return what the admin listener answers."""
        with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=6 * PATIENCE) as answer:
            text: str = answer.read().decode()
            return text

    def connections(self) -> int:
        """Return the number of connections in all states, on all listeners."""
        metrics = self.metrics()
        return int(sum(metrics.connections(name) for name in LISTENERS))

    def ended(self) -> Ends:
        """Return the number of ended connections on all listeners, by reason."""
        metrics = self.metrics()
        return sum((metrics.ended(name) for name in LISTENERS), Counter[EndReason]())

    @property
    def rss(self) -> int:
        """Return the resident bytes."""
        return memory(self._process.pid)["Rss"]

    @property
    def cpu(self) -> float:
        """Return the seconds of CPU that the process has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def descriptors(self) -> int:
        """Return the number of open descriptors."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208

    def has_descriptors(self, number: int) -> bool:
        """Return True once this many are open, give or take the one of a scrape."""
        return bool(in_time(lambda: abs(self.descriptors - number) <= 1))

    def report(self) -> Report:
        """Return the report from within since the last one."""
        return self._asked(signal.SIGUSR1)

    def set_collector(self) -> None:
        """Apply the collector setting named at the start, and reset all counts."""
        self._asked(signal.SIGUSR2)

    def hang_up(self) -> None:
        """Make the gateway reload its rules."""
        self._process.send_signal(signal.SIGHUP)

    def _asked(self, how: signal.Signals) -> Report:
        self._process.send_signal(how)
        self._written += 1
        report = in_time(self._new_report)
        assert report, "the gateway did not answer"
        return Report(report["peak"], report["blocks"], report["step"], report["pauses"])

    def _new_report(self) -> dict[str, Any] | None:
        with suppress(OSError):
            report: dict[str, Any] = json.loads(self._report.read_text())
            return report if report["written"] == self._written else None
        return None

    def is_at_rest(self) -> bool:
        """Return True without connections, buffered bytes and descriptors of connections."""
        return self.connections() == 0 and self.metrics().buffered == 0

    def stop(self) -> None:
        """Stop the gateway, and check that it exits in good order and has logged no bug."""
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
    """Yield a running gateway."""
    gateway = Gateway(folder, brokers, settings, collector)
    try:
        yield gateway
    finally:
        gateway.stop()
