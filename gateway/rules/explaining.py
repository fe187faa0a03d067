"""Which limits hold for somebody who does something, and why, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.policy.matching import AppliedLimit, Explanation
from gateway.policy.rules import DIMENSIONS
from gateway.rules import words

_INDENT = "    "


def lines(found: Explanation, action: str, *, everything: bool) -> Iterator[str]:
    """Answer what to print. `everything`: the rules that do not match too."""
    if not found.applied:
        yield f"nothing limits {action} here"
    for dimension in DIMENSIONS[action]:
        limits = [it for it in found.applied if it.dimension is dimension]
        replaced = [it for it in found.replaced if it.limit.dimension is dimension]
        if limits or replaced:
            yield dimension
        for limit in sorted(limits, key=lambda it: it.rate):
            yield f"{_INDENT}{_limit(limit)}{_note(limit, limits)}"
        for limit, by in replaced:
            yield f"{_INDENT}{_limit(limit)}: replaced by {by.id}"
    if everything and found.not_applied:
        yield "rules that do not apply"
        yield from (f"{_INDENT}{rule.id}: {why}" for rule, why in found.not_applied)


def _limit(limit: AppliedLimit) -> str:
    value = words.limit(limit.dimension, limit.rate)
    burst = f", burst {words.amount(limit.dimension, limit.burst)}" if limit.burst else ""
    return f"{value}{burst}: rule {limit.rule.id}, {_shared(limit)}"


def _shared(limit: AppliedLimit) -> str:
    if not limit.key:
        return "one for all that match"
    parts = zip(limit.rule.per, limit.key, strict=True)
    return "for " + ", ".join(f"{field} {value or 'unknown'}" for field, value in parts)


def _note(limit: AppliedLimit, limits: list[AppliedLimit]) -> str:
    if limit.mode == "shadow":
        return ": shadow, counts only"
    enforced = [it for it in limits if it.mode == "enforce"]
    strictest = len(enforced) > 1 and limit.rate == min(it.rate for it in enforced)
    return ": the strictest" if strictest else ""
