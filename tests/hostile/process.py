"""One gateway process, its metrics and its log."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import yaml

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.real.brokers.ports import free_ports
from tests.support.frames import send, simple
from tests.support.memory import resident

from .peers import HOST, PATIENCE, Client

CHECKOUT = Path(__file__).resolve().parents[2]
LISTENERS = "passing", "masking", "verifying"
"""The listeners under attack; one more serves good clients."""
HANDSHAKE = 1.0
"""Seconds of tests that wait for this deadline: long enough for good clients on a slow machine."""

COLLECTED = 256 * 1024

Ends = Counter[EndReason]
T = TypeVar("T")


def until(reached: Callable[[], T]) -> T:
    """Wait until `reached()` is true, and return its value."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = reached()
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.01)


class Addressed(Protocol):
    """A broker. `address`: its host and port."""

    @property
    def address(self) -> str: ...


class Metrics:
    """The gateway's metrics at one moment."""

    def __init__(self, text: str) -> None:
        samples = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        self._samples = {name: float(value) for name, value in samples}

    def matching(self, *parts: str) -> list[float]:
        """Return the values of all samples whose name and labels contain these parts."""
        found = [
            value for name, value in self._samples.items() if all(part in name for part in parts)
        ]
        assert found, f"there is no metric {parts}"
        return found

    @property
    def buffered(self) -> float:
        """Return the number of bytes that the gateway keeps."""
        return self._samples["gateway_buffered_bytes"]

    @property
    def remembered(self) -> float:
        """Return the number of bytes that connections keep, as the gateway counts them."""
        return self._samples["gateway_remembered_bytes"]

    @property
    def healthy_brokers(self) -> float:
        """Return the number of healthy brokers. A gateway that has just started knows none yet."""
        return sum(v for name, v in self._samples.items() if "gateway_broker_healthy" in name)

    def connections(self, listener: str) -> float:
        """Return the number of connections in all states."""
        return sum(self.matching("gateway_connections{", f'listener="{listener}"'))

    def ended(self, listener: str) -> Ends:
        """Return the number of ended connections by reason."""
        labels = 'gateway_connections_ended_total{listener="%s",reason="%s"}'
        return Counter(
            {reason: int(self._samples[labels % (listener, reason)]) for reason in EndReason}
        )


class Gateway:
    """A gateway process with one listener of each kind, in front of some brokers.

    `wrapper` is the command that starts it, `more` are settings beside the usual ones, and `stderr`
    says where its log goes, if not into the file.
    """

    def __init__(
        self,
        brokers: Sequence[Addressed],
        directory: Path,
        deadlines: dict[str, str],
        wrapper: Sequence[str] = (),
        more: Mapping[str, Any] = MappingProxyType({}),
        stderr: int | None = None,
    ) -> None:
        names = (*LISTENERS, "serving", "checking")
        *ports, admin = free_ports(HOST, len(names) + 1)
        self.ports = dict(zip(names, ports, strict=True))
        self.admin = admin
        self.log = directory / "gateway.log"
        file = directory / "gateway.yaml"
        secret = directory / "secret"
        secret.write_bytes(secrets.token_bytes(32))
        settings = self._settings(brokers, admin, secret, deadlines)
        for part, values in more.items():
            settings[part] = settings.get(part, {}) | values if isinstance(values, dict) else values
        file.write_text(yaml.safe_dump(settings))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*wrapper, sys.executable, "-m", "gateway", "run", str(file)],
                stdout=log,
                stderr=log if stderr is None else stderr,
                env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            )
        if not until(self._is_ready):
            self.process.terminate()  # its workers too
            self.process.wait(PATIENCE)
            raise AssertionError(f"the gateway did not start:\n{self.log.read_text()}")

    def _settings(
        self, brokers: Sequence[Addressed], admin: int, secret: Path, deadlines: dict[str, str]
    ) -> dict[str, Any]:
        token = {"secret_file": str(secret)}
        kinds: dict[str, dict[str, Any]] = {
            "passing": {},
            "serving": {},
            "checking": {"checksums": "verify"},
            "masking": {"unknown": "mask"},
            "verifying": {"identity": {"mode": "verify", "token": token}},
        }
        addresses = ",".join(broker.address for broker in brokers)
        return {
            "version": 1,
            "listeners": [
                {"name": name, "bind": f"{HOST}:{port}", "cluster": "main"} | kinds[name]
                for name, port in self.ports.items()
            ],
            "clusters": {"main": {"brokers": f"pulsar://{addresses}"}},
            "admin": {"bind": f"{HOST}:{admin}"},
            "deadlines": {"grace": "0s"} | deadlines,
            "limits": {"collected_frame": COLLECTED, "buffered": "8MiB"},
            "data_plane": {"buffer": "64KiB"},
        }

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the gateway ended:\n{self.log.read_text()}"
        with suppress(OSError):
            return bool(self.get("/readyz"))
        return False

    # -- its reports -------------------------------------------------------------------------

    def metrics(self) -> Metrics:
        """Return all metrics as of now."""
        return Metrics(self.get("/metrics"))

    def get(self, path: str, patience: float = PATIENCE) -> str:
        """Return what the admin listener answers within `patience` seconds. Raises `OSError`."""
        url = f"http://{HOST}:{self.admin}{path}"
        with urllib.request.urlopen(url, timeout=patience) as response:
            text: str = response.read().decode()
            return text

    @property
    def healthy(self) -> bool:
        """Return True if the gateway knows its broker to be healthy."""
        return self.metrics().healthy_brokers > 0

    def failures(self, cause: str) -> float:
        """Return how often the gateway failed to reach its broker for this cause."""
        return sum(self.metrics().matching("gateway_broker_failures_total{", f'cause="{cause}"'))

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of one event."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    @property
    def buffered(self) -> float:
        """Return the number of bytes that the gateway keeps."""
        return self.metrics().buffered

    @property
    def memory(self) -> int:
        """Return the resident memory in bytes."""
        return resident(self.process.pid)

    @property
    def descriptors(self) -> int:
        """Return the number of open descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208

    # -- expectations of tests ---------------------------------------------------------------

    @contextmanager
    def expecting(self, listener: str, *reasons: EndReason, number: int = 1) -> Iterator[None]:
        """Check that this many connections end within the block, each for one of these reasons, and
        that no connection or buffered byte remains."""
        before = self.metrics().ended(listener)
        yield

        def settled() -> Metrics | None:
            metrics = self.metrics()
            ends = metrics.ended(listener).total() - before.total()
            calm = metrics.connections(listener) == metrics.buffered == 0
            return metrics if calm and ends >= number else None

        metrics = until(settled) or self.metrics()
        ends = metrics.ended(listener) - before
        assert ends.total() == number, ends
        assert ends.keys() <= set(reasons), ends
        assert metrics.connections(listener) == 0
        assert metrics.buffered == 0

    def serves(self) -> None:
        """Check that a good client can use the gateway."""
        self.serves_at("serving")

    def serves_at(self, listener: str) -> None:
        """Check that a good client can use this listener."""
        with Client(self.ports[listener]).open() as client:
            client.produce()
            for sequence_id in range(3):
                client.say(send(1, sequence_id))
                assert client.hear().send_receipt.sequence_id == sequence_id
            client.drip(simple(Kind.PING))
            assert client.hear().type == BaseCommand.PONG

    def stop(self) -> None:
        """Stop the gateway, and check that it exits in good order and has logged no bug."""
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(PATIENCE) == 0
        finally:
            self.process.kill()
            self.process.wait()
        log = self.log.read_text()
        assert "Traceback" not in log, log[-5000:]
        assert "internal_error" not in log, log[-5000:]
