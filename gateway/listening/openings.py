"""Connections whose clients are not authenticated yet, over all listeners of a process.

Most become known before their pair opens. Where brokers authenticate clients on open pairs, a pair
is counted here until its session says that the client is known (`Session.is_known`).

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
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import trio

from gateway.wire.holder import holder


class Figures(Protocol):
    """A plain counter, which telemetry reads: of connections that gave way."""

    displaced: int


@dataclass(slots=True)
class Unread:
    """`Figures` that nobody reads."""

    displaced: int = 0


class Openings:
    """The unauthenticated connections of a process, by what identifies them. `most`: how many there
    may be at a time."""

    def __init__(self, most: int, figures: Figures | None = None) -> None:
        self.figures: Figures = Unread() if figures is None else figures
        self._most = most
        self._under_way: dict[Hashable, str] = {}  # by whom; the oldest first
        self._waiting: dict[Hashable, Callable[[], object]] = {}  # what makes them give way
        self._unnamed: dict[
            Hashable, Callable[[], bool]
        ] = {}  # open; whether they are known by now
        self._gave_way: set[Hashable] = set()  # and have not ended yet
        self._of_address = Counter[str]()  # those that wait
        self._room = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        """Return the number of connections that are not authenticated."""
        return len(self._under_way)

    @property
    def has_room(self) -> bool:
        """Return whether another opening may begin: fewer than `most` are in progress, or one of
        them waits for its client and can be cancelled."""
        return len(self._under_way) < self._most or bool(self._waiting)

    def begin(self, connection: Hashable, host: str) -> None:
        """Count a new opening from an address. If all addresses together have too many openings,
        cancel one that waits for its client."""
        self._forget_named()
        if len(self._under_way) >= self._most:
            self.displace()
        self._under_way[connection] = holder(host)

    def keep(
        self,
        connection: Hashable,
        host: str,
        is_known: Callable[[], bool],
        end: Callable[[], object],
    ) -> None:
        """Count an open connection until its client is known, or it has ended. `end`: ends it, if
        it gives way to another."""
        self.begin(connection, host)
        self._unnamed[connection] = is_known
        self._wait(connection, end)

    def _forget_named(self) -> None:
        """Stop counting open connections that are known by now, from the oldest to the first that
        is not."""
        while self._unnamed:
            oldest, is_known = next(iter(self._unnamed.items()))
            if not is_known():
                return
            self.end(oldest)

    def attribute(self, connection: Hashable, host: str) -> None:
        """Count an opening under the client's address that a trusted proxy has stated, not under
        the proxy's own."""
        if connection in self._under_way:
            self._under_way[connection] = holder(host)

    def displace(self) -> bool:
        """Displace the oldest waiting opening of the address that has most of them. Return whether
        one has given way."""
        most = max(self._of_address.values(), default=0)
        fitting = (
            connection
            for connection, address in self._under_way.items()
            if connection in self._waiting and self._of_address[address] == most
        )
        oldest = next(fitting, None)
        if oldest is None:
            return False
        is_known, give_way = self._unnamed.get(oldest, _never), self._waiting[oldest]
        self.end(oldest)
        if not is_known():
            self._gave_way.add(oldest)
            self.figures.displaced += 1
            give_way()
        return True

    def end(self, connection: Hashable) -> None:
        """Stop counting an opening, because its client is authenticated, or is gone."""
        self._proceed(connection)
        self._under_way.pop(connection, None)
        self._unnamed.pop(connection, None)
        self._gave_way.discard(connection)
        self._room.unpark_all()

    @contextmanager
    def waiting(self, connection: Hashable, scope: trio.CancelScope) -> Iterator[None]:
        """Mark, during the context, that an opening waits for its client. `scope` is cancelled if a
        newer opening displaces this one; it is cancelled at the client's deadline too."""
        if connection in self._under_way:
            self._wait(connection, scope.cancel)
        elif connection in self._gave_way:  # and its bytes came at that moment
            scope.cancel()
        try:
            yield
        finally:
            self._proceed(connection)

    def _wait(self, connection: Hashable, give_way: Callable[[], object]) -> None:
        self._waiting[connection] = give_way
        self._of_address[self._under_way[connection]] += 1
        self._room.unpark_all()

    def _proceed(self, connection: Hashable) -> None:
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


def _never() -> bool:
    return False
