"""Rules, their differences, and the limits that apply, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.policy.dimensions import DIMENSIONS, Dimension, Unit
from gateway.policy.expiry import written
from gateway.policy.matching import AppliedLimit, Explanation
from gateway.policy.rates import Burst
from gateway.policy.rules import Rule

_INDENT = "    "

_STEPS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))

# -- differences -------------------------------------------------------------------------------


def differences(old: Iterable[Rule], new: Iterable[Rule]) -> list[str]:
    """Return one line for each rule that was added (`+`), removed (`-`) or changed (`~`), sorted by
    id.

    Below a changed rule, indented lines have its old and new settings.
    """
    before = {rule.id: rule for rule in old}
    after = {rule.id: rule for rule in new}
    return [
        line
        for id in sorted(before.keys() | after.keys())
        for line in _difference(id, before.get(id), after.get(id))
    ]


def _difference(id: str, old: Rule | None, new: Rule | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{'+' if old is None else '-'} {id}"
    elif old != new:
        yield f"~ {id}"
        before, after = dict(_settings(old)), dict(_settings(new))
        for setting in dict.fromkeys([*before, *after]):
            was, is_now = before.get(setting, "none"), after.get(setting, "none")
            if was != is_now:
                yield f"{_INDENT}{setting}: {was} -> {is_now}"


def _settings(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each setting of a rule, defaults included."""
    for field, matched in rule.match:
        yield f"match.{field}", ", ".join(map(str, matched)) or "any"
    yield "allow", ", ".join(rule.allow) or "nothing"
    yield "deny", ", ".join(rule.deny) or "nothing"
    for dimension, value in rule.limits:
        yield f"limit.{dimension}", _limit(dimension, value)
    yield "per", ", ".join(rule.per) or "all together"
    yield "burst", _burst(rule.burst)
    yield "override", "true" if rule.override else "false"
    for field in ("partitions", "mode", "action", "on_overflow", "on_store_failure"):
        yield field, getattr(rule, field)
    yield "expires", "never" if rule.expires is None else written(rule.expires)


# -- explanations ------------------------------------------------------------------------------


def explanation(explained: Explanation, action: str, *, everything: bool) -> Iterator[str]:
    """Yield lines that say which limits and rights apply to an action, and why.

    `everything`: also yield lines about the rules that do not apply.
    """
    if explained.rights is not None:
        yield from _verdict(explained.rights, action)
    if not explained.applied and action in DIMENSIONS:
        yield f"nothing limits {action} here"
    for dimension in DIMENSIONS.get(action, ()):
        limits = [limit for limit in explained.applied if limit.dimension is dimension]
        replaced = [pair for pair in explained.replaced if pair.limit.dimension is dimension]
        if limits or replaced:
            yield dimension
        for limit in sorted(limits, key=lambda limit: limit.rate):
            yield f"{_INDENT}{_applied(limit)}{_note(limit, limits)}"
        for limit, by in replaced:
            yield f"{_INDENT}{_applied(limit)}: replaced by {by.id}"
    if everything and explained.not_applied:
        yield "rules that do not apply"
        yield from (f"{_INDENT}{rule.id}: {why}" for rule, why in explained.not_applied)


def _verdict(rights: tuple[Rule, ...], action: str) -> Iterator[str]:
    """Yield which rules allow or deny an action, the deciding one first."""
    enforced = [rule for rule in rights if rule.mode == "enforce"]
    if enforced:
        verb = "denied" if enforced[0].deny else "allowed"
        yield f"{action} is {verb} by rule {enforced[0].id}{_until(enforced[0])}"
    else:
        yield f"no rule says who may {action} here: the listener's access decides"
    for rule in rights:
        if rule not in enforced[:1]:
            verb = "denies" if rule.deny else "allows"
            note = ": shadow, counts only" if rule.mode == "shadow" else ""
            too = " too" if enforced and bool(rule.deny) == bool(enforced[0].deny) else ""
            yield f"{_INDENT}rule {rule.id} {verb} it{too}{_until(rule)}{note}"


def _applied(limit: AppliedLimit) -> str:
    value = _limit(limit.dimension, limit.rate)
    burst = f", burst {_amount(limit.dimension, limit.burst)}" if limit.burst else ""
    return f"{value}{burst}: rule {limit.rule.id}, {_sharing(limit)}{_until(limit.rule)}"


def _until(rule: Rule) -> str:
    return "" if rule.expires is None else f", until {written(rule.expires)}"


def _sharing(limit: AppliedLimit) -> str:
    if not limit.key:
        return "one for all that match"
    parts = zip(limit.rule.per, limit.key, strict=True)
    return "for " + ", ".join(f"{field} {value or 'unknown'}" for field, value in parts)


def _note(limit: AppliedLimit, limits: list[AppliedLimit]) -> str:
    if limit.mode == "shadow":
        return ": shadow, counts only"
    enforced = [applied for applied in limits if applied.mode == "enforce"]
    strictest = len(enforced) > 1 and limit.rate == min(applied.rate for applied in enforced)
    return ": the strictest" if strictest else ""


# -- values ------------------------------------------------------------------------------------


def _limit(dimension: Dimension, value: float) -> str:
    """Return `100/s`, `10MB/s`, or a plain number."""
    return _number(value) if dimension.is_concurrency else _amount(dimension, value) + "/s"


def _amount(dimension: Dimension, value: float) -> str:
    return _size(value) if dimension.unit is Unit.BYTES else _number(value)


def _size(value: float) -> str:
    for unit, suffix in _STEPS:
        if value >= unit:
            return _number(value / unit) + suffix
    return _number(value) + "B"


def _number(value: float) -> str:
    """Return six significant digits, or a whole number in full."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def _burst(burst: Burst | None) -> str:
    if burst is None:
        return "the usual"
    return f"{burst.seconds:g}s" if burst.amount is None else _number(burst.amount)
