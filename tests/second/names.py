"""Advertised names: one gateway address for each broker, which its port identifies."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.brokers.names import UNKNOWN_NAME
from gateway.wire.address import Address, parse_host_port
from gateway.wire.contract import Denial


class PortNames:
    """See `brokers.names.Names`. `places`: the gateway's address for each broker.

    A broker has only one address, so other generations have none.
    """

    def __init__(self, places: Mapping[Address, Address]) -> None:
        self._places = dict(places)
        self._brokers = {place.port: broker for broker, place in places.items()}

    def advertise(self, broker: Address, generation: int = 0) -> Address | Denial:
        """See `Names`."""
        return UNKNOWN_NAME if generation else self._places.get(broker, UNKNOWN_NAME)

    def open(self, name: str) -> Address | Denial:
        """See `Names`. Only the port counts: a listener is bound to any host, and clients may know
        it by several names."""
        try:
            _, port = parse_host_port(name)
        except ValueError:
            return UNKNOWN_NAME
        return self._brokers.get(port or 0, UNKNOWN_NAME)
