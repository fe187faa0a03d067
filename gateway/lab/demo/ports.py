"""The demonstration's ports, all on loopback."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple

from gateway.errors import ConfigurationError
from gateway.lab.demo.plan import KAFKA, PULSAR
from gateway.wire.address import LAST_PORT, Address, parse_url, split_urls
from gateway.wire.pulsar.urls import SCHEMES

HOST = "127.0.0.1"

KAFKA_BROKERS = 2
"""Brokers of Kafka, each of which has a port of the gateway."""

VARIABLE = "GATEWAY_DEMO_PORTS"
"""Selects other ports: four numbers separated by commas, in the order of `Ports`."""


class Ports(NamedTuple):
    """The ports of the gateway's listener, its admin listener and its console, and of the Pulsar
    sandbox's control."""

    clients: int = 6650
    admin: int = 8080
    console: int = 8090
    control: int = 16680

    @property
    def kafka_brokers(self) -> tuple[int, ...]:
        """Return the gateway's ports that stand for the Kafka brokers: the next ones after the port
        `clients`."""
        return tuple(range(self.clients + 1, self.clients + 1 + KAFKA_BROKERS))


DEFAULTS = {PULSAR: Ports(), KAFKA: Ports(clients=9092)}
"""The default ports, by protocol."""


def read_ports(environment: Mapping[str, str], protocol: str = PULSAR) -> Ports:
    """Return the ports in the variable `GATEWAY_DEMO_PORTS`; if unset, the protocol's default
    ports. Raises `ConfigurationError` if it is wrong."""
    text = environment.get(VARIABLE)
    if not text:
        return DEFAULTS[protocol]
    numbers = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    good = {number for number in numbers if 1 <= number <= LAST_PORT}
    if len(text.split(",")) != len(Ports._fields) or len(good) != len(Ports._fields):
        usual = ",".join(map(str, DEFAULTS[protocol]))
        raise ConfigurationError(
            f"{VARIABLE} is wrong: name four different ports, like {usual}, "
            "for clients, admin, console and control"
        )
    ports = Ports(*numbers)
    if protocol == KAFKA and not good.isdisjoint(ports.kafka_brokers):
        raise ConfigurationError(
            f"{VARIABLE} is wrong: the {KAFKA_BROKERS} ports behind {ports.clients} are for brokers"
        )
    if protocol == KAFKA and ports.kafka_brokers[-1] > LAST_PORT:
        raise ConfigurationError(
            f"{VARIABLE} is wrong: {ports.clients} has no {KAFKA_BROKERS} ports behind it"
        )
    return ports


def brokers(urls: str) -> tuple[Address, ...]:
    """Return the addresses in `pulsar://host:port[,host:port]`, without repetitions. Raises
    `ConfigurationError`."""
    try:
        return tuple({parse_url(url, SCHEMES): None for url in split_urls(urls)})
    except ValueError as why:
        raise ConfigurationError(
            f"--brokers {why}. Write for example pulsar://a.example:6650,b.example:6650"
        ) from None


def require_free(ports: tuple[int, ...]) -> None:
    """Raise a `ConfigurationError` if one of these ports is in use; its text names the port."""
    for port in ports:
        try:
            socket.create_server((HOST, port)).close()
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {HOST}:{port}: {_reason(error)}; end what listens there, "
                f"or name other ports: {VARIABLE}=26650,28080,28090,26680"
            ) from None


def require_reachable(addresses: tuple[Address, ...], seconds: float) -> None:
    """Raise a `ConfigurationError` if no broker accepts a connection within `seconds`."""
    reasons = []
    for address in addresses:
        try:
            socket.create_connection((address.host, address.port), seconds).close()
        except OSError as error:
            reasons.append(f"{address}: {_reason(error)}")
        else:
            return
    raise ConfigurationError(f"cannot connect to any broker ({'; '.join(reasons)}); is it running?")


def _reason(error: OSError) -> str:
    """Return the system's error text, without Python's additions."""
    if error.errno and error.errno > 0:  # errors of name lookups are negative
        return os.strerror(error.errno).lower()
    return (error.strerror or str(error)).lower()
