"""The addresses of a cluster's brokers by their ids, for protocols whose brokers have ids."""

from __future__ import annotations

from collections import OrderedDict

from gateway.wire.address import Address

MOST = 4096
"""Brokers to remember; each takes some 200 bytes. The largest clusters have some hundreds. Beyond
the bound, the broker that was stated longest ago is forgotten."""


class Nodes:
    """The addresses of brokers by id, as brokers have stated them last. `most`: how many brokers
    are remembered."""

    def __init__(self, most: int = MOST) -> None:
        self._brokers: OrderedDict[int, Address] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._brokers)

    def learn(self, node: int, broker: Address) -> None:
        """Remember the address of the broker with this id."""
        self._brokers[node] = broker
        self._brokers.move_to_end(node)
        if len(self._brokers) > self._most:
            self._brokers.popitem(last=False)

    def broker(self, node: int) -> Address | None:
        """Return the address of the broker with this id; None if no broker has stated it."""
        return self._brokers.get(node)
