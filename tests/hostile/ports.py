"""A gateway with few source ports, in a network namespace of its own.

The kernel's range of ephemeral ports, 28,000 by default, bounds the gateway's connections to one
broker. Here thirty clients exhaust it.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from itertools import count
from pathlib import Path

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError

from .peers import CONNECT, Broker, Client
from .process import Gateway, until

PORTS = 30
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def bring_up_loopback() -> None:
    """Bring up the loopback interface of a new namespace, which starts down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def exhaust_ports(gateway: Gateway) -> list[Client]:
    """Connect clients until one finds no broker, and return all of them."""
    clients: list[Client] = []
    while len(clients) <= PORTS:
        # Each client has a source address of its own, and so takes no port that the gateway needs.
        source = f"127.0.1.{len(clients) + 1}"
        clients.append(Client(gateway.ports["passing"], source=source))
        clients[-1].say(CONNECT)
        response = clients[-1].hear()
        if response.type == BaseCommand.ERROR:
            assert response.error.error == ServerError.ServiceNotReady
            return clients
    raise AssertionError("there was a port for each")


def main(folder: Path) -> None:
    bring_up_loopback()
    broker = Broker()
    gateway = Gateway([broker], folder, {"idle": "1h"})
    try:
        RANGE.write_text(f"40000 {40000 + PORTS - 1}")
        clients = exhaust_ports(gateway)
        assert +gateway.metrics().ended("passing") == {EndReason.NO_BROKER: 1}
        assert gateway.failures("own") > 0
        assert gateway.logged("resources_exhausted")
        assert gateway.healthy, "the gateway blames the broker"
        for client in clients:
            client.close()
        tries = count(1)
        assert until(lambda: serves(gateway, next(tries))), "the gateway does not recover"
    finally:
        gateway.stop()
    print(f"{EndReason.NO_BROKER.value} and back")


def serves(gateway: Gateway, number: int) -> bool:
    """Return True if a client is let in: ports are free again a second after their use."""
    with Client(gateway.ports["serving"], source=f"127.0.2.{number}") as client:
        client.say(CONNECT)
        return client.hear().type == BaseCommand.CONNECTED


if __name__ == "__main__":
    main(Path(sys.argv[1]))
