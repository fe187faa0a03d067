"""The gateway's own addresses for brokers, in protocols whose brokers have ids.

Either each broker has a port of the listener, by the place of its id among the declared ids: so the
port is the same after a restart and on each replica. Or each broker has a TLS server name, and all
share one port.
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
    """Maps brokers' ids to addresses of the gateway, and back. `any`: the address at which clients
    reach any broker."""

    @property
    def any(self) -> Address: ...

    def of(self, node: int) -> Address | Denial:
        """Return the address at which clients reach the broker with this id; a denial if it has
        none."""
        ...

    def node(self, reached: Address, server_name: str | None) -> int | None:
        """Return the id of the broker for which a reached address stands; None: it stands for any
        broker."""
        ...


class PortEndpoints:
    """Gives each broker a port. `host`: by which clients reach the listener. `any_port`: the port
    for any broker. `ids`: of the brokers, which get the ports from `first` on in this order."""

    def __init__(self, host: str, any_port: int, ids: Iterable[int], first: int) -> None:
        self.any = Address(host, any_port)
        self._ports = {id: first + number for number, id in enumerate(ids)}
        self._ids = {port: id for id, port in self._ports.items()}
        self._host = host

    def of(self, node: int) -> Address | Denial:
        """Return the host with the broker's port; see `Endpoints`."""
        port = self._ports.get(node)
        return _UNDECLARED if port is None else Address(self._host, port)

    def node(self, reached: Address, server_name: str | None) -> int | None:
        """See `Endpoints`. Only the port counts: a listener is bound to any host, and clients may
        know it by several names."""
        return self._ids.get(reached.port)


class NameEndpoints:
    """Gives each broker a TLS server name, all on one port. `template`: of the names, with `{n}`
    for the id. `any_name`: the name for any broker."""

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
        """See `Endpoints`. Only the server name counts, in upper or lower case."""
        name = (server_name or "").lower()
        inner = name[len(self._before) : len(name) - len(self._behind)]
        if not inner.isdecimal() or not inner.isascii() or len(inner) > LONGEST_ID:
            return None
        whole = f"{self._before}{int(inner)}{self._behind}"
        return int(inner) if whole == name else None


LONGEST_ID = 10
"""Digits of the largest id, 2147483647."""
