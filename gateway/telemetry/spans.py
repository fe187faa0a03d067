"""Spans of OpenTelemetry: operations of the gateway with their begin and end, by which requests are
traced. There is a span for each opened connection, for each lookup, and for the drain, but none for
a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """One operation that is over.

    `began`, `ended`: monotonic seconds. `error`: why the operation failed; empty if it succeeded.
    `attributes`: with the names of OpenTelemetry's semantic conventions, if these have a name for
    the attribute. `parts`: operations that were part of this one.
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
