"""Write the frames of chosen connections to the log."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

import structlog

from gateway.front.conversation import Watch
from gateway.wire.contract import Direction, Entry, Origin, Trace


class Tracing:
    """The connections of one listener to trace: all (`everything`), or those from `networks`."""

    def __init__(
        self, networks: Iterable[IPv4Network | IPv6Network] = (), *, everything: bool = False
    ) -> None:
        self._networks = tuple(networks)
        self._everything = everything
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

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
        if not self._networks:
            return False
        address = ip_address(host.partition("%")[0])
        return any(address in network for network in self._networks)


def opening_watch(entry: Entry, trace: Trace) -> Watch:
    """Return a function that traces each frame that an opening conversation receives."""

    def watch(direction: Direction, frame: bytes) -> None:
        trace(direction, entry.describe(frame), len(frame), "opening")

    return watch
