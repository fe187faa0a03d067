"""Spans of OpenTelemetry: operations of the gateway with begin and end, to trace requests. There is
one for each opened connection, each lookup and the drain; never one for a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """One operation that is over.

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
"""A function that takes a span that is over. It must not wait, and raises nothing."""

CONNECTION = "gateway.connection"
"""The attribute with the number of the connection, which log lines have too."""
