"""Gateways in front of Kafka brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.real.brokers.ports import free_range
from tests.real.gateways import HOST, Plan, Settings, Upstream

IDS = 6
"""Ids of brokers that have a port: 0 to 5."""


@dataclass(frozen=True)
class KafkaPlan(Plan):
    """A plan for a listener of Kafka. `first_port`: of its brokers' ports."""

    first_port: int = field(default_factory=lambda: free_range(HOST, IDS))
    listener: Callable[[Settings], Any] = lambda _: None

    @property
    def scheme(self) -> str:
        return "kafka+ssl" if self.tls else "kafka"

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        found = super().settings(broker, port, admin_port)
        ports = {"host": HOST, "ids": f"0-{IDS - 1}", "first_port": self.first_port}
        found["listeners"][0] |= {"protocol": "kafka", "advertise": {"ports": ports}}
        self.listener(found["listeners"][0])
        return found
