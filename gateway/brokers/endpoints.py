"""The gateway's own addresses for brokers, in protocols whose brokers have ids.

Either each broker has a port of its own at the listener, or each broker has a TLS server name, and
all brokers share one port. The port of a broker depends on the place of its id among the configured
ids, so it is the same after a restart and on each replica.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gateway.wire.address import Address
from gateway.wire.contract import Denial, Refusal

_UNDECLARED = Denial(Refusal.TARGET, "no address is declared for a broker with this id")

PLACE = "{n}"
"""Stands for a broker's id in the template of server names."""


class Endpoints(Protocol):
    """Maps the ids of brokers to addresses of the gateway, and back. `any`: the address at which
    clients reach any broker."""

    @property
    def any(self) -> Address: ...

    def of(self, node: int) -> Address | Denial:
        """Return the address at which clients reach the broker with this id; a denial if the
        gateway has no address for it."""
        ...

    def node(self, reached: Address, server_name: str | None) -> int | None:
        """Return the id of the broker for which an address of the gateway stands; None: the address
        stands for any broker. `reached`, `server_name`: the address and the TLS server name that a
        client connected to."""
        ...


class PortEndpoints:
    """Gives each broker a port. `host`: the host by which clients reach the listener. `any_port`:
    the port for any broker. `ids`: the ids of the brokers. In this order, the brokers have the
    ports from `first` on."""

    def __init__(self, host: str, any_port: int, ids: Iterable[int], first: int) -> None:
        self.any = Address(host, any_port)
        self._ports = {id: first + number for number, id in enumerate(ids)}
        self._ids = {port: id for id, port in self._ports.items()}
        self._host = host

    def of(self, node: int) -> Address | Denial:
        """Return the listener's host with the broker's port; see `Endpoints`."""
        port = self._ports.get(node)
        return _UNDECLARED if port is None else Address(self._host, port)

    def node(self, reached: Address, server_name: str | None) -> int | None:
        """Return the id of the broker that has the reached port; None: the port is for any broker,
        see `Endpoints`. The host is not compared, because a listener may be bound to all addresses,
        and clients may know its host by several names."""
        return self._ids.get(reached.port)


class NameEndpoints:
    """Gives each broker a TLS server name; all brokers have the same port. `template`: the server
    names, with `{n}` in place of the broker's id. `any_name`: the server name for any broker."""

    def __init__(self, template: str, any_name: str, port: int) -> None:
        self.any = Address(any_name, port)
        self._before, _, self._behind = template.lower().partition(PLACE)
        self._port = port

    def of(self, node: int) -> Address | Denial:
        """Return the broker's server name with the port; see `Endpoints`."""
        if node < 0:
            return _UNDECLARED
        return Address(f"{self._before}{node}{self._behind}", self._port)

    def node(self, reached: Address, server_name: str | None) -> int | None:
        """Return the id of the broker that has this server name, compared without regard to the
        case of letters; None: the name is for any broker, see `Endpoints`."""
        name = (server_name or "").lower()
        inner = name[len(self._before) : len(name) - len(self._behind)]
        if not inner.isdecimal() or not inner.isascii() or len(inner) > LONGEST_ID:
            return None
        whole = f"{self._before}{int(inner)}{self._behind}"
        return int(inner) if whole == name else None


LONGEST_ID = 10
"""Digits of the largest id, 2147483647."""
