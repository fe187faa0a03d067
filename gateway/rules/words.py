"""Values of a rule as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.rates import Burst
from gateway.policy.rules import Dimension, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEPS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def limit(dimension: Dimension, value: float) -> str:
    """Write a limit: `100/s`, `10MB/s`, or a plain number."""
    if dimension.is_concurrency:
        return _number(value)
    return amount(dimension, value) + "/s"


def amount(dimension: Dimension, value: float) -> str:
    """Write how much of a dimension."""
    return _size(value) if dimension.is_in_bytes else _number(value)


def _size(value: float) -> str:
    for unit, suffix in _STEPS:
        if value >= unit:
            return _number(value / unit) + suffix
    return _number(value) + "B"


def _number(value: float) -> str:
    """Six digits; whole numbers in full."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def values(rule: Rule) -> Iterator[tuple[str, str]]:
    """Answer all that a rule says, defaults too, by the way that leads there."""
    for field, matched in rule.match:
        yield f"match.{field}", ", ".join(map(str, matched)) or "any"
    for dimension, value in rule.limit.values():
        yield f"limit.{dimension}", limit(dimension, value)
    yield "per", ", ".join(rule.per) or "all together"
    yield "burst", _burst(rule.burst)
    yield "override", "true" if rule.override else "false"
    for field in ("partitions", "mode", "action", "on_overflow", "on_store_failure"):
        yield field, getattr(rule, field)


def _burst(burst: Burst | None) -> str:
    if burst is None:
        return "the usual"
    return f"{burst.seconds:g}s" if burst.amount is None else _number(burst.amount)
