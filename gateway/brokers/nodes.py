"""Where the brokers of a cluster are, by their ids, for protocols whose brokers have some."""

from __future__ import annotations

from collections import OrderedDict

from gateway.wire.address import Address

MOST = 4096
"""The most brokers that are remembered; each takes some 200 bytes. The largest clusters have some
hundreds. Beyond the bound, the broker that was named longest ago is forgotten."""


class Nodes:
    """Addresses by id, as brokers last told them."""

    def __init__(self, most: int = MOST) -> None:
        self._brokers: OrderedDict[int, Address] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._brokers)

    def learn(self, node: int, broker: Address) -> None:
        """Note where a broker is."""
        self._brokers[node] = broker
        self._brokers.move_to_end(node)
        if len(self._brokers) > self._most:
            self._brokers.popitem(last=False)

    def broker(self, node: int) -> Address | None:
        """Return where a broker is; None: nobody has said it."""
        return self._brokers.get(node)
