"""Gateways in front of Kafka brokers."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from tests.real.brokers.ports import free_range
from tests.real.gateways import HOST, Gateway, Plan, Settings, Upstream
from tests.support.relay import relay

IDS = 6
"""Ids of brokers that have a port: 0 to 5."""


@dataclass(frozen=True)
class KafkaPlan(Plan):
    """A plan for a listener of Kafka. `first_port`: of its brokers' ports. `host`: by which clients
    reach them."""

    first_port: int = field(default_factory=lambda: free_range(IDS))
    host: str = HOST

    @property
    def scheme(self) -> str:
        return "kafka+ssl" if self.tls else "kafka"

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        found = super().settings(broker, port, admin_port)
        ports = {"host": self.host, "ids": f"0-{IDS - 1}", "first_port": self.first_port}
        found["listeners"][0] |= {"protocol": "kafka", "advertise": {"ports": ports}}
        return found


TAP = "127.0.0.95"
"""Where taps listen, at the ports of their gateway."""


class Tap:
    """Stands before all ports of a gateway that advertises `TAP`. `told`: all that clients got."""

    def __init__(self, gateway: Gateway, plan: KafkaPlan) -> None:
        self.told = bytearray()
        ports = (gateway.port, *range(plan.first_port, plan.first_port + IDS))
        self._listening = [socket.create_server((TAP, port)) for port in ports]
        for listening in self._listening:
            threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                self._serve(listening.accept()[0], listening.getsockname()[1])

    def _serve(self, client: socket.socket, port: int) -> None:
        try:
            served = socket.create_connection((HOST, port))
        except OSError:  # the gateway is down, as the client is to notice
            client.close()
            return
        for ends in ((client, served, None), (served, client, self.told.extend)):
            threading.Thread(target=relay, args=ends, daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more."""
        for listening in self._listening:
            listening.close()
