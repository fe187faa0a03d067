"""The span of an opening, with spans of its steps inside.

connect                        from the accepted connection to the open pair, or its refusal
├── handshake                  of TLS with the client
├── authenticate               from the client's first frame until it is authenticated, or refused
└── dial (each)                a connection to a broker
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.telemetry.spans import Span
from gateway.wire.contract import Denial, Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.front.conversation import Watch
    from gateway.telemetry.spans import Value
    from gateway.wire.address import Address
    from gateway.wire.contract import Dialled


class ConnectionSpan:
    """Records the steps of one opening as spans. `clock`: returns monotonic seconds."""

    __slots__ = ("_authenticating", "_clock", "_parts")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._authenticating: float | None = None
        self._parts: list[Span] = []

    def shaken(self, began: float, error: str = "") -> None:
        """Record the TLS handshake, which ends now. `began`: when it began, by `clock`. `error`:
        why it failed; empty if it succeeded."""
        self._parts.append(Span("handshake", began, self._clock(), error))

    def watching(self, watch: Watch | None) -> Watch:
        """Return a function to be called with each received frame: it notes when the client's first
        frame came, and calls `watch`."""

        def noted(direction: Direction, frame: bytes) -> None:
            if self._authenticating is None and direction is Direction.TO_BROKER:
                self._authenticating = self._clock()
                self._parts.append(Span("authenticate", self._authenticating, 0.0))
            if watch is not None:
                watch(direction, frame)

        return noted

    def known(self) -> None:
        """Record that the client is authenticated now."""
        self._authenticated("")

    def _authenticated(self, error: str) -> None:
        for place, span in enumerate(self._parts):
            if span.name == "authenticate" and not span.ended:
                self._parts[place] = Span(span.name, span.began, self._clock(), error)

    def dialled(self, began: float, target: Address | None, result: Dialled | Denial) -> None:
        """Record a connection attempt to a broker, which ends now. `began`: when it began, by
        `clock`. `target`: the broker; None: any broker of the cluster."""
        self._parts.append(dial_span(began, self._clock(), target, result))

    def span(self, began: float, error: str, attributes: Mapping[str, Value]) -> Span:
        """Return the span of the whole opening. `error`: why the opening failed; empty if it
        succeeded."""
        self._authenticated(error)
        parts = tuple(self._parts)
        return Span("connect", began, self._clock(), error, attributes, parts)


def dial_span(began: float, ended: float, target: Address | None, result: Dialled | Denial) -> Span:
    """Return the span of a connection attempt to a broker. `target`: the broker; None: any broker
    of the cluster."""
    address, error = target, ""
    if isinstance(result, Denial):
        error = result.text or result.refusal.value
    else:
        address = result.address
    attributes: dict[str, Value] = {}
    if address is not None:
        attributes = {"server.address": address.host, "server.port": address.port}
    return Span("dial", began, ended, error, attributes)
