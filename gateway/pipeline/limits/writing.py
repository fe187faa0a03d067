"""Writes recommended limits as a file of rules, each in shadow mode, with what it is based on.

The same limits give the same text, so a file changes only where a limit does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path

from gateway.pipeline.limits.deciding import Limit, What
from gateway.pipeline.limits.texts import block, checked, readable
from gateway.rules import files
from gateway.rules.promoting import RECOMMENDED

_UNITS = {What.PUBLISH_BYTES: "B", What.DISPATCH_BYTES: "B"}

_HEAD = """\
# Limits that history recommends. Each only counts what it would have held (mode: shadow);
# `gateway rules promote ID` has one enforced. Written anew by `gateway pipeline recommend`.
version: 1
rules:
"""


def document(limits: Iterable[Limit], until: date) -> str | None:
    """Return the text of a file; None without limits, because a file has at least one rule.
    `until`: the day up to which the recommendations are good."""
    ordered = sorted(limits, key=lambda it: (it.seen.tenant, it.seen.what))
    if not ordered:
        return None
    return checked(_HEAD + "".join(_rule(limit, until) for limit in ordered))


def _rule(limit: Limit, until: date) -> str:
    seen, unit = limit.seen, _UNITS.get(limit.seen.what, "")
    family, quantity = seen.what.split(".")
    held = f", {_number(seen.held)} while frames waited" if seen.held else ""
    evidence = (
        f"usual {_number(seen.usual)}/s, most {_number(seen.most)}/s, "
        f"{_number(seen.peak)} in one second{held}; {seen.days} days, {seen.intervals} intervals"
    )
    rule = {
        "id": identifier(seen.tenant, seen.what),
        "match": {"tenant": [seen.tenant]},
        "limit": {family: {quantity: f"{limit.rate}{unit}/s"}},
        "per": ["tenant"],
        "burst": f"{limit.burst}B" if unit else limit.burst,
        "mode": "shadow",
        "expires": until.isoformat(),
    }
    return block([evidence], rule)


def identifier(tenant: str, what: What) -> str:
    """Return the id of a rule: readable, and another one for each tenant."""
    digest = hashlib.blake2s(tenant.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    return f"{RECOMMENDED}{readable(tenant, 'tenant')}.{digest}.{what.replace('.', '-')}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def current(path: Path) -> Mapping[str, int]:
    """Return the rates that a file recommends, by the id of the rule; none without a file. Raises
    `ConfigurationError` if it is wrong."""
    if not path.exists():
        return {}
    rules = files.rules_of(files.load([path]))
    return {rule.id: round(rate) for rule in rules for _, rate in rule.limits}


def expiry(path: Path) -> date | None:
    """Return the last day on which the recommendations of a file are good; None without one. Raises
    `ConfigurationError` if it is wrong."""
    if not path.exists():
        return None
    rules = files.rules_of(files.load([path]))
    ends = min((rule.expires for rule in rules if rule.expires is not None), default=None)
    return None if ends is None else (ends - timedelta(microseconds=1)).date()


def good_until(today: date, days: int, before: date | None) -> date:
    """Return until when recommendations are good: for `days`. It moves on only once half of that
    is over, or the file would change every day."""
    if before is not None and before > today + timedelta(days=days // 2):
        return before
    return today + timedelta(days=days)
