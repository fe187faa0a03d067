"""Gateways in front of TubeMQ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.apache_kafka.gateways import KafkaPlan
from tests.apache_tubemq.broker import TubeMQ
from tests.real.gateways import Settings, Upstream

ALICE_ALONE = """
version: 1
rules:
  - id: alice
    match: {tenant: tubemq, principal: alice}
    allow: [produce, consume]
"""
"""Rules by which alice may do everything, where `access` is closed."""


@dataclass(frozen=True)
class TubePlan(KafkaPlan):
    """A plan for a listener of TubeMQ, whose brokers have ports as Kafka's have. `brokers`: where
    they are, which may be dialled."""

    brokers: tuple[tuple[str, int], ...] = ()

    @property
    def scheme(self) -> str:
        return "tubemq"

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        found = super().settings(broker, port, admin_port)
        found["listeners"][0]["protocol"] = "tubemq"
        (cluster,) = found["clusters"].values()
        hosts, ports = zip(*self.brokers, strict=True)
        networks = [f"{host}/32" for host in hosts]
        cluster["targets"] = {"networks": networks, "ports": sorted(set(ports))}
        return found


def in_front_of(servers: TubeMQ, **more: Any) -> TubePlan:
    """Return a plan for a gateway in front of these servers. `more`: see `Plan`."""
    return TubePlan(brokers=tuple(servers.brokers.values()), **more)
