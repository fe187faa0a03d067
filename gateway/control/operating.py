"""Carries out what operators ask for."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING

from gateway.wire.contract import EndReason

if TYPE_CHECKING:
    from gateway.front.tracing import Tracing
    from gateway.telemetry.log import Levels


class Operating:
    """The desk of one process; see `console.desk.Desk`. `end`: ends an open connection by its id,
    and returns whether there is one. `reload`: None without rules."""

    def __init__(
        self,
        end: Callable[[int, EndReason], bool],
        reload: Callable[[], None] | None,
        levels: Levels,
        tracings: Iterable[Tracing],
    ) -> None:
        self._end = end
        self._reload = reload
        self._levels = levels
        self._tracings = tuple(tracings)

    def close(self, connection: int) -> str | None:
        """See `Desk`."""
        closed = self._end(connection, EndReason.OPERATOR_CLOSED)
        return None if closed else "there is no such connection"

    def drain(self) -> str | None:
        """See `Desk`."""
        signal.raise_signal(signal.SIGTERM)
        return None

    def reload(self) -> str | None:
        """See `Desk`."""
        if self._reload is None:
            return "there are no rules"
        self._reload()
        return None

    def set_level(self, level: str, event: str | None, seconds: float) -> str | None:
        """See `Desk`."""
        self._levels.set(level, event, seconds)
        return None

    def trace(self, network: IPv4Network | IPv6Network, seconds: float) -> str | None:
        """See `Desk`."""
        for tracing in self._tracings:
            tracing.add(network, seconds)
        return None
