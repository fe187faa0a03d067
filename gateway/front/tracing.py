"""Writes the frames of chosen connections to the log."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

import structlog

from gateway.front.conversation import Watch
from gateway.wire.contract import Direction, Entry, Trace


class Tracing:
    """Which connections of one listener are traced: all, or those from some networks."""

    def __init__(
        self, networks: Iterable[IPv4Network | IPv6Network] = (), *, everything: bool = False
    ) -> None:
        self._networks = tuple(networks)
        self._everything = everything
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def of(self, connection: int, client: str) -> Trace | None:
        """How to trace this connection; None: not at all. `client`: `address:port`."""
        if not self._everything and not self._chosen(client):
            return None

        def trace(direction: Direction, frame: str, size: int, decision: str) -> None:
            way = direction.name.lower()
            self._log.info(
                "frame",
                connection=connection,
                direction=way,
                frame=frame,
                size=size,
                decision=decision,
            )

        return trace

    def _chosen(self, client: str) -> bool:
        if not self._networks:
            return False
        address = ip_address(client.rpartition(":")[0].strip("[]").partition("%")[0])
        return any(address in network for network in self._networks)


def opening_watch(entry: Entry, trace: Trace) -> Watch:
    """Traces the frames that an opening receives."""

    def watch(direction: Direction, frame: bytes) -> None:
        trace(direction, entry.describe(frame), len(frame), "opening")

    return watch
