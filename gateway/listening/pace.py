"""Limits how often one address may connect, before its clients are authenticated."""

from __future__ import annotations

from collections import OrderedDict

from gateway.wire.holder import holder

BURST = 2.0
"""Seconds of the rate that may come at once: a client opens several connections in a row."""

REMEMBERED = 100_000
"""Addresses that are remembered, 150 bytes each. A peer with more addresses than these gains
nothing by having some forgotten."""


class Pace:
    """The rate of new connections from each address on one listener. `rate`: connections per second
    and address; None: unlimited."""

    def __init__(self, rate: float | None) -> None:
        self._interval = None if rate is None else 1.0 / rate
        # Half a connection more: what times lose by rounding changes no number of connections.
        self._most = 0.0 if rate is None else max(BURST, 1.0 / rate) + 0.5 / rate
        # When an address has had all that it used, by the rate (GCRA); the latest caller is last.
        self._until: OrderedDict[str, float] = OrderedDict()

    def may_connect(self, host: str, now: float) -> bool:
        """Return whether an address may connect now. If it may, count the connection. `now`:
        seconds of any monotonic clock."""
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
