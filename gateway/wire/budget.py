"""One memory budget for the state that the sessions of all connections keep.

A session keeps its client's CONNECT, each producer and consumer, each lookup without a response,
and each delayed frame, for as long as its peers want. One connection has bounds for these, but
clients may have many connections, so all connections take their bytes from one budget.

An address gets no more than it leaves free (as in `plane.share`): half of the budget, or half of
the bytes that other addresses leave. So later clients find room.
"""

from __future__ import annotations

from gateway.wire.holder import holder

SIZE = 512 * 1024 * 1024
"""Bytes of a budget by default."""


class Budget:
    """The memory budget of a process. `size`: bytes that all connections may take; `taken`: bytes
    that they have taken."""

    __slots__ = ("_of_address", "size", "taken")

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.taken = 0
        self._of_address: dict[str, int] = {}

    def fits(self, address: str, size: int) -> bool:
        """Return whether an address may take `size` bytes more."""
        own = self._of_address.get(address, 0) + size
        return own <= self.size - self.taken - size

    def add(self, address: str, size: int) -> None:
        """Count `size` bytes for an address, and in `taken`. A negative `size` gives bytes back."""
        self.taken += size
        own = self._of_address.get(address, 0) + size
        if own:
            self._of_address[address] = own
        else:
            self._of_address.pop(address, None)


class Quota:
    """The bytes of the memory budget that one connection has taken. They count for the holder of
    its client's address (see `holder`)."""

    __slots__ = ("_address", "_budget", "taken")

    def __init__(self, budget: Budget, address: str) -> None:
        self._budget = budget
        self._address = holder(address)
        self.taken = 0

    def fits(self, size: int) -> bool:
        """Return whether this connection may take `size` bytes more."""
        return self._budget.fits(self._address, size)

    def take(self, size: int) -> None:
        """Take `size` bytes from the budget. Call `fits` first, unless at least as many bytes were
        given back just before."""
        self.taken += size
        self._budget.add(self._address, size)

    def give_back(self, size: int) -> None:
        """Give `size` bytes back to the budget."""
        self.take(-size)

    def close(self) -> None:
        """Give all bytes of this connection back to the budget, because the connection has
        ended."""
        self.give_back(self.taken)
