"""Polls a gateway while it works."""

import threading
import time
from dataclasses import dataclass, field

from tests.real.gateways import Gateway
from tests.real.metrics import scrape, total

LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Look:
    """Kept bytes; memory of the process; CPU seconds since its start; connections."""

    at: float
    buffered: float
    memory: float
    cpu: float
    accepted: float
    ended: float


def look(gateway: Gateway) -> Look:
    text = scrape(gateway.metrics_url)
    return Look(
        time.time(),
        total(text, "gateway_buffered_bytes"),
        total(text, "process_resident_memory_bytes"),
        total(text, "process_cpu_seconds_total"),
        total(text, "gateway_connections_accepted_total"),
        total(text, "gateway_connections_ended_total"),
    )


@dataclass
class Watch:
    """Polls until stopped; `looks` are all observations."""

    gateway: Gateway
    looks: list[Look] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take a last look, and stop."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self.looks.append(look(self.gateway))

    def _run(self) -> None:
        while not self._over.is_set():
            self.looks.append(look(self.gateway))
            self._over.wait(LOOK_SECONDS)
