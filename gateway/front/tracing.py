"""Write the frames of chosen connections to the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

import structlog

from gateway.front.conversation import Watch
from gateway.wire.contract import Direction, Entry, Origin, Trace

MOST_ADDED = 100
"""Networks that are traced for a while, at a time: each is looked at for each connection."""


class Tracing:
    """The connections of one listener to trace: all (`everything`), or those from `networks`."""

    def __init__(
        self,
        networks: Iterable[IPv4Network | IPv6Network] = (),
        *,
        everything: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._added: dict[IPv4Network | IPv6Network, float] = {}  # until when
        self._networks = tuple(networks)
        self._everything = everything
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def add(self, network: IPv4Network | IPv6Network, seconds: float) -> None:
        """Trace clients from a network that connect in this time. At `MOST_ADDED` networks the
        oldest is given up."""
        now = self._clock()
        self._added = {it: until for it, until in self._added.items() if until > now}
        while len(self._added) >= MOST_ADDED:
            del self._added[next(iter(self._added))]
        self._added[network] = now + seconds

    def trace_of(self, origin: Origin) -> Trace | None:
        """Return the function that traces frames of a connection; None: it is not traced."""
        if not self._everything and not self._is_in_networks(origin.host):
            return None

        def trace(direction: Direction, frame: str, size: int, decision: str) -> None:
            self._log.info(
                "frame",
                connection=origin.id,
                direction=direction.name.lower(),
                frame=frame,
                size=size,
                decision=decision,
            )

        return trace

    def _is_in_networks(self, host: str) -> bool:
        if not self._networks and not self._added:
            return False
        address = ip_address(host.partition("%")[0])
        if any(address in network for network in self._networks):
            return True
        now = self._clock()
        return any(now < until and address in it for it, until in self._added.items())


def opening_watch(entry: Entry, trace: Trace) -> Watch:
    """Return a function that traces each frame that an opening conversation receives."""

    def watch(direction: Direction, frame: bytes) -> None:
        trace(direction, entry.describe(frame), len(frame), "opening")

    return watch
