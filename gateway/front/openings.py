"""Connections that are not authenticated yet, over all listeners of a process.

Any peer can open many of them and stay silent, so they have a bound of their own. If it is reached,
an opening that waits for its client gives way to a new one: the oldest of the address that has most
of them. So an address that opens many displaces its own, and clients that are silent, or send a
byte now and then, from however many addresses, lock nobody out: a client that responds at once is
authenticated before its turn to give way comes. Openings that wait for the gateway do not give way.
If all openings wait for the gateway, it accepts no further connection until one of them ends, and
the kernel keeps new connections waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from gateway.telemetry.figures import OpeningFigures
from gateway.wire.holder import holder


class Openings:
    """The connections of a process that are being opened, by connection id. `most`: how many may be
    opened at a time."""

    def __init__(self, most: int) -> None:
        self.figures = OpeningFigures()
        self._most = most
        self._under_way: dict[int, str] = {}  # by whom; the oldest first
        self._waiting: dict[int, trio.CancelScope] = {}
        self._gave_way: set[int] = set()  # and have not ended yet
        self._of_address = Counter[str]()  # those that wait
        self._room = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        """Return the number of openings under way."""
        return len(self._under_way)

    @property
    def has_room(self) -> bool:
        """Return whether another opening may begin: fewer than `most` are in progress, or one of
        them waits for its client and can be cancelled."""
        return len(self._under_way) < self._most or bool(self._waiting)

    def begin(self, connection: int, host: str) -> None:
        """Count a new opening from an address. If all addresses together have too many openings,
        cancel one that waits for its client."""
        if len(self._under_way) >= self._most:
            self._displace()
        self._under_way[connection] = holder(host)

    def attribute(self, connection: int, host: str) -> None:
        """Count an opening under the client's address that a trusted proxy has stated, not under
        the proxy's own."""
        if connection in self._under_way:
            self._under_way[connection] = holder(host)

    def _displace(self) -> None:
        """Displace the oldest waiting opening of the address that has most of them."""
        most = max(self._of_address.values(), default=0)
        fitting = (
            connection
            for connection, address in self._under_way.items()
            if connection in self._waiting and self._of_address[address] == most
        )
        oldest = next(fitting, None)
        if oldest is not None:
            self._waiting[oldest].cancel()
            self.end(oldest)
            self._gave_way.add(oldest)
            self.figures.displaced += 1

    def end(self, connection: int) -> None:
        """Stop counting an opening, because its client is authenticated, or is gone."""
        self._proceed(connection)
        self._under_way.pop(connection, None)
        self._gave_way.discard(connection)
        self._room.unpark_all()

    @contextmanager
    def waiting(self, connection: int, scope: trio.CancelScope) -> Iterator[None]:
        """Mark, during the context, that an opening waits for its client. `scope` is cancelled if a
        newer opening displaces this one; it is cancelled at the client's deadline too."""
        if connection in self._under_way:
            self._waiting[connection] = scope
            self._of_address[self._under_way[connection]] += 1
            self._room.unpark_all()
        elif connection in self._gave_way:  # and its bytes came at that moment
            scope.cancel()
        try:
            yield
        finally:
            self._proceed(connection)

    def _proceed(self, connection: int) -> None:
        """Stop counting a wait."""
        if self._waiting.pop(connection, None) is None:
            return
        address = self._under_way[connection]
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]

    async def room(self) -> None:
        """Wait until another opening may begin (`has_room`)."""
        while not self.has_room:
            await self._room.park()
