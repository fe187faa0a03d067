"""Spans: what the gateway did, from when until when, for those who follow requests through a system
(OpenTelemetry). There is one for each opening, each lookup and the drain; never for a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """One operation, when it is over.

    `began`, `ended`: monotonic seconds. `error`: why it failed; empty if it succeeded.
    `attributes`: named as OpenTelemetry's semantic conventions name them, where they do. `parts`:
    operations that were part of it.
    """

    name: str
    began: float
    ended: float
    error: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    parts: tuple[Span, ...] = ()


Spans = Callable[[Span], None]
"""Takes a span that is over. It must not wait, and raises nothing."""

CONNECTION = "gateway.connection"
"""The attribute that has the number of a connection, by which log lines are found."""
