"""Carries out in one process what operators ask for; see `console.actions.Desk`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from gateway.wire.contract import EndReason

if TYPE_CHECKING:
    from gateway.front.tracing import Tracing
    from gateway.telemetry.log import Levels


class Operating:
    """`end`: ends an open connection by its id, and returns whether there is one."""

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
        """Return what does it, by question; see `console.asking.Answers`."""
        return {"close": self._close, "level": self._set_level, "trace": self._trace}

    def _close(self, connection: int) -> Iterator[bool]:
        yield self._end(connection, EndReason.OPERATOR_CLOSED)

    def _set_level(self, asked: tuple[str, str | None, float]) -> Iterator[bool]:
        self._levels.set(*asked)
        yield True

    def _trace(self, asked: tuple[str | None, str | None, float]) -> Iterator[bool]:
        """Trace clients of a network, or of a principal, that connect in so many seconds."""
        network, principal, seconds = asked
        for tracing in self._tracings:
            if network is not None:
                tracing.add(ip_network(network), seconds)
            if principal is not None:
                tracing.add_principal(principal, seconds)
        yield True
