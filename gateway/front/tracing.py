"""Writes the frames of chosen connections to the log."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

import structlog

from gateway.front.conversation import Watch
from gateway.wire.contract import Direction, Entry, Origin, Trace


class Tracing:
    """Which connections of one listener are traced: all, or those from some networks."""

    def __init__(
        self, networks: Iterable[IPv4Network | IPv6Network] = (), *, everything: bool = False
    ) -> None:
        self._networks = tuple(networks)
        self._everything = everything
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def of(self, origin: Origin) -> Trace | None:
        """How to trace a connection; None: not at all."""
        if not self._everything and not self._chosen(origin.host):
            return None

        def trace(direction: Direction, frame: str, size: int, decision: str) -> None:
            way = direction.name.lower()
            self._log.info(
                "frame",
                connection=origin.id,
                direction=way,
                frame=frame,
                size=size,
                decision=decision,
            )

        return trace

    def _chosen(self, host: str) -> bool:
        if not self._networks:
            return False
        address = ip_address(host.partition("%")[0])
        return any(address in network for network in self._networks)


def opening_watch(entry: Entry, trace: Trace) -> Watch:
    """Traces the frames that an opening receives."""

    def watch(direction: Direction, frame: bytes) -> None:
        trace(direction, entry.describe(frame), len(frame), "opening")

    return watch
