"""Gateways whose listeners speak another protocol than Pulsar, and what all hostile clients do."""

from __future__ import annotations

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from .peers import HOST, PATIENCE, Closed, Wire
from .process import Addressed, Gateway, until

MIB = 1 << 20
LISTENERS = ("passing", "verifying")


class ProtocolGateway(Gateway, ABC):
    """A gateway whose listeners speak `protocol`; subclasses say the rest."""

    protocol: str

    def _settings(
        self, brokers: Sequence[Addressed], admin: int, secret: Path, deadlines: dict[str, str]
    ) -> dict[str, Any]:
        found = super()._settings(brokers, admin, secret, deadlines)
        identity = {"mode": "verify", **self._identity(secret)}
        found["listeners"] = [
            {
                "name": name,
                "bind": f"{HOST}:{port}",
                "cluster": "main",
                "protocol": self.protocol,
                "advertise": {
                    "ports": {"host": HOST, "ids": "1", "first_port": self._first_port(name)}
                },
                **({"identity": identity} if name == "verifying" else {}),
            }
            for name, port in self.ports.items()
            if name != "masking"
        ]
        (broker,) = brokers
        url = f"{self.protocol}://{broker.address}"
        found["clusters"] = {"main": {"brokers": url, **self._cluster(broker)}}
        return found

    @abstractmethod
    def _identity(self, secret: Path) -> dict[str, Any]:
        """Return how the listener `verifying` knows clients. `secret`: a file that has one."""

    @abstractmethod
    def _first_port(self, listener: str) -> int:
        """Return the port of the only broker of a listener."""

    def _cluster(self, broker: Addressed) -> dict[str, Any]:
        """Return more settings of the cluster."""
        return {}

    def client(self, listener: str) -> Wire:
        """Return a client that has connected."""
        return connected(self.ports[listener])


def connected(port: int) -> Wire:
    """Return a client that has connected to a port."""
    return Wire(socket.create_connection((HOST, port), timeout=PATIENCE))


def hear_to_the_end(client: Wire) -> None:
    """Read whatever comes until the connection ends."""
    with suppress(Closed, TimeoutError):
        while True:
            client._read(1)


def flood(gateway: ProtocolGateway, said: Sequence[bytes]) -> None:
    """Have 600 strangers say this to the listener that verifies, 50 at once; check that a good
    client is served meanwhile, and that nothing of them is left."""
    before = gateway.memory

    def stranger(number: int) -> None:
        with suppress(OSError), gateway.client("verifying") as client:
            client.say(said[number % len(said)])
            client.sock.shutdown(socket.SHUT_WR)
            hear_to_the_end(client)

    with ThreadPoolExecutor(50) as pool:
        strangers = [pool.submit(stranger, number) for number in range(600)]
        for _ in range(20):
            gateway.serves()
        for each in strangers:
            each.result()
    assert until(lambda: gateway.metrics().connections("verifying") == 0)
    assert gateway.buffered == 0
    assert gateway.memory - before < 24 * MIB


def storm(gateway: ProtocolGateway, connect: Callable[[int], Wire], say: Say) -> None:
    """Have 60 clients say anything, 12 at once; some reset their connections, some end them. Check
    that a good client is served meanwhile, and that nothing of them is left."""

    def hostile(number: int) -> None:
        with suppress(OSError, Closed), connect(number) as client:
            say(number, client)
            if number % 3:
                client.reset()
            else:
                client.sock.shutdown(socket.SHUT_WR)
                hear_to_the_end(client)

    with ThreadPoolExecutor(12) as pool:
        hostiles = [pool.submit(hostile, number) for number in range(60)]
        gateway.serves()
        for each in hostiles:
            each.result()
    assert until(lambda: gateway.metrics().connections("passing") == 0)
    assert until(lambda: gateway.buffered == 0)


Say = Callable[[int, Wire], None]
"""What the client with a number says."""


def stuff(gateway: ProtocolGateway, client: Wire, first: bytes, asked: bytes, most: int) -> None:
    """Have a client ask for 3 seconds as fast as it can, and read nothing; check that the gateway
    keeps at most `most` bytes for it, and serves a good client."""
    before = gateway.memory
    with suppress(OSError), client:
        client.say(first)
        client.sock.settimeout(1)
        until_s = time.monotonic() + 3
        with suppress(TimeoutError, OSError):
            while time.monotonic() < until_s:
                client.sock.sendall(asked)
        gateway.serves()
        assert gateway.memory - before < most
        client.reset()
    assert until(lambda: gateway.buffered == 0)
