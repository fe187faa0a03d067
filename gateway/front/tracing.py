"""Writes the frames of chosen connections to the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Generic, TypeVar

import structlog

from gateway.front.conversation import Watch
from gateway.wire.contract import Direction, Entry, Origin, Trace

MOST_ADDED = 100
"""Most networks, and most principals, that may be traced for a limited time: each network is
compared with the address of each connection."""

Network = IPv4Network | IPv6Network

T = TypeVar("T", bound=Hashable)


class _ForAWhile(Generic[T]):
    """What is traced for a limited time. Of too many the oldest is given up."""

    def __init__(self) -> None:
        self._until: dict[T, float] = {}

    def add(self, what: T, now: float, seconds: float) -> None:
        self._until = {traced: until for traced, until in self._until.items() if until > now}
        while len(self._until) >= MOST_ADDED:
            del self._until[next(iter(self._until))]
        self._until[what] = now + seconds

    def at(self, now: float) -> Iterator[T]:
        return (traced for traced, until in self._until.items() if now < until)


class Tracing:
    """Selects which connections of one listener are traced: all (`everything`), or those from
    `networks`; and, for a limited time, those from further networks and of certain principals."""

    def __init__(
        self,
        networks: Iterable[Network] = (),
        *,
        everything: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._added = _ForAWhile[Network]()
        self._principals = _ForAWhile[str]()
        self._networks = tuple(networks)
        self._everything = everything
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def add(self, network: Network, seconds: float) -> None:
        """Trace each client that connects from a network within the next `seconds`."""
        self._added.add(network, self._clock(), seconds)

    def add_principal(self, principal: str, seconds: float) -> None:
        """Trace each client that connects as this principal within the next `seconds`."""
        self._principals.add(principal, self._clock(), seconds)

    def trace_of(self, origin: Origin) -> Trace | None:
        """Return the function that writes the frames of a new connection to the log; None if the
        client's address is not traced. The client's principal is not known yet."""
        if self._everything or self._is_in_networks(origin.host):
            return self._trace(origin.id)
        return None

    def trace_of_principal(self, principal: str | None, connection: int) -> Trace | None:
        """Return the function that writes the frames of an open connection to the log; None if its
        principal is not traced."""
        if principal is None or principal not in self._principals.at(self._clock()):
            return None
        return self._trace(connection)

    def _trace(self, connection: int) -> Trace:
        def trace(direction: Direction, frame: str, size: int, decision: str) -> None:
            self._log.info(
                "frame",
                connection=connection,
                direction=direction.name.lower(),
                frame=frame,
                size=size,
                decision=decision,
            )

        return trace

    def _is_in_networks(self, host: str) -> bool:
        added = tuple(self._added.at(self._clock()))
        if not self._networks and not added:
            return False
        address = ip_address(host.partition("%")[0])
        return any(address in network for network in (*self._networks, *added))


def opening_watch(entry: Entry, trace: Trace) -> Watch:
    """Return a function that logs each frame that is received until the connection is open."""

    def watch(direction: Direction, frame: bytes) -> None:
        trace(direction, entry.describe(direction, frame), len(frame), "opening")

    return watch
