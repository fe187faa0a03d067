"""The side connections of one pair: to brokers that a lookup was redirected to.

They are opened in the client's name, so they are never shared between pairs. They are kept for a
little while, because lookups come in bursts, and bounded in number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from gateway.front.leg import Leg
from gateway.wire.contract import Address, Denial, Dialled

AT_ONCE = 8
"""Lookups of one pair that are chased at a time, so also the most side connections it has. A
client that starts has dozens of lookups; each takes some milliseconds."""

KEPT = 20.0
"""Seconds that an unused side connection is kept. A broker pings after 30 s and nobody would
answer."""

Connect = Callable[[Address | None], Awaitable[Leg | Denial]]


class SideConnections:
    """A pool for one pair. Made at the first redirect."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._idle: list[tuple[Address, float, Leg]] = []
        self._taken: dict[Leg, Address] = {}
        self._closed = False
        self.room = trio.Semaphore(AT_ONCE)

    async def reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """An opened connection to this broker, or a new one."""
        assert target is not None
        leg = self._pooled(target)
        if leg is None:
            connected = await self._connect(target)
            if isinstance(connected, Denial):
                return connected
            self._taken[connected] = target
            return connected, Dialled(target)
        self._taken[leg] = target
        return leg, Dialled(target, fresh=False)

    def _pooled(self, target: Address) -> Leg | None:
        self._sweep()
        for entry in reversed(self._idle):
            if entry[0] == target:
                self._idle.remove(entry)
                if entry[2].is_alive():
                    return entry[2]
                entry[2].close()
        return None

    def _sweep(self) -> None:
        """Close what was not used for long."""
        oldest = trio.current_time() - KEPT
        for entry in [entry for entry in self._idle if entry[1] < oldest]:
            self._idle.remove(entry)
            entry[2].close()

    def give_back(self, legs: list[Leg], *, usable: bool) -> None:
        """A chase is over; its connections can serve another one if nothing went wrong."""
        for leg in legs:
            address = self._taken.pop(leg)
            if usable and not self._closed and not leg.received:
                self._idle.append((address, trio.current_time(), leg))
            else:
                leg.close()

    async def expire(self) -> None:
        """Close what stays unused; ends when nothing is left."""
        while self._idle:
            await trio.sleep(KEPT)
            self._sweep()

    def close(self) -> None:
        """The pair is over."""
        self._closed = True
        for _, _, leg in self._idle:
            leg.close()
        self._idle.clear()
