"""Carries out admin actions in one process; see `console.actions.AdminActions`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from gateway.wire.contract import EndReason

if TYPE_CHECKING:
    from gateway.front.tracing import Tracing
    from gateway.telemetry.log import Levels


class Operating:
    """The admin actions of one process. `end`: a function that ends an open connection by its id,
    and returns whether there is such a connection. `levels`: the log levels. `tracings`: the
    tracing of each listener."""

    def __init__(
        self,
        end: Callable[[int, EndReason], bool],
        levels: Levels,
        tracings: Iterable[Tracing],
    ) -> None:
        self._end = end
        self._levels = levels
        self._tracings = tuple(tracings)

    def answers(self) -> dict[str, Callable[[Any], Iterator[Any]]]:
        """Return the functions that carry out admin actions, by name; see
        `console.asking.Answers`."""
        return {"close": self._close, "level": self._set_level, "trace": self._trace}

    def _close(self, connection: int) -> Iterator[bool]:
        yield self._end(connection, EndReason.OPERATOR_CLOSED)

    def _set_level(self, request: tuple[str, str | None, float]) -> Iterator[bool]:
        self._levels.set(*request)
        yield True

    def _trace(self, request: tuple[str | None, str | None, float]) -> Iterator[bool]:
        """Trace the connections of a network or principal that are opened in the next seconds."""
        network, principal, seconds = request
        for tracing in self._tracings:
            if network is not None:
                tracing.add(ip_network(network), seconds)
            if principal is not None:
                tracing.add_principal(principal, seconds)
        yield True
