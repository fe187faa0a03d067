"""The memory that sessions keep for as long as a peer wants, all connections together.

A session remembers what its client said when it connected, each producer and consumer, each lookup
that has no answer, and each frame whose time has not come. One connection has bounds for these, but
clients may have many connections, so all of them take their bytes from one budget.

An address gets no more than it leaves free, as of `plane.share`: half of the budget, or half of
what others leave. So whoever comes later finds room.
"""

from __future__ import annotations

from gateway.wire.holder import holder

SIZE = 512 * 1024 * 1024
"""Bytes of a budget where nothing is said."""


class Budget:
    """`size`: bytes that all connections of a process may take; `taken`: those that they have."""

    __slots__ = ("_of_address", "size", "taken")

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.taken = 0
        self._of_address: dict[str, int] = {}

    def fits(self, address: str, size: int) -> bool:
        """Return whether an address may take so many bytes more."""
        own = self._of_address.get(address, 0) + size
        return own <= self.size - self.taken - size

    def add(self, address: str, size: int) -> None:
        """Count so many bytes more for an address; fewer where `size` is negative."""
        self.taken += size
        own = self._of_address.get(address, 0) + size
        if own:
            self._of_address[address] = own
        else:
            self._of_address.pop(address, None)


class Allotment:
    """What one connection has taken of a budget. `address`: of its client (see `holder`)."""

    __slots__ = ("_address", "_budget", "taken")

    def __init__(self, budget: Budget, address: str) -> None:
        self._budget = budget
        self._address = holder(address)
        self.taken = 0

    def fits(self, size: int) -> bool:
        """Return whether this connection may take so many bytes more."""
        return self._budget.fits(self._address, size)

    def take(self, size: int) -> None:
        """Take so many bytes. Ask `fits` first, unless they were only just given back."""
        self.taken += size
        self._budget.add(self._address, size)

    def give_back(self, size: int) -> None:
        """Return so many bytes to the budget."""
        self.take(-size)

    def close(self) -> None:
        """The connection is over: give all back."""
        self.give_back(self.taken)
