"""How often an address may connect, before anything is known of its clients."""

from __future__ import annotations

from collections import OrderedDict

from gateway.wire.holder import holder

BURST = 2.0
"""Seconds of the rate that may come at once: a client opens some connections in a row."""

REMEMBERED = 100_000
"""Addresses that are remembered, 150 bytes each. Whoever has more than these has no need to hide
behind being forgotten."""


class Pace:
    """The pace of all addresses on one listener. `rate`: connections for each second, of each
    address; None: no bound."""

    def __init__(self, rate: float | None) -> None:
        self._interval = None if rate is None else 1.0 / rate
        # Half a connection more: what times lose by rounding changes no number of connections.
        self._most = 0.0 if rate is None else max(BURST, 1.0 / rate) + 0.5 / rate
        # When an address has had all that it used, by the rate (GCRA); the latest caller is last.
        self._until: OrderedDict[str, float] = OrderedDict()

    def may_connect(self, host: str, now: float) -> bool:
        """Return whether an address may connect now, and count it if so."""
        if self._interval is None:
            return True
        address = holder(host)
        until = max(now, self._until.get(address, now)) + self._interval
        if until - now > self._most:
            return False
        self._until[address] = until
        self._until.move_to_end(address)
        if len(self._until) > REMEMBERED:
            self._until.popitem(last=False)
        return True
