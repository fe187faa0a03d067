"""Writes recommended limits as a file of rules, each in shadow mode, with what it is based on.

The same limits give the same text, so a file changes only where a limit does. The text is checked
by the model that gateways read it by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path

import yaml

from gateway.errors import InternalError
from gateway.pipeline.limits.deciding import Limit, What
from gateway.rules import files
from gateway.rules.promoting import RECOMMENDED
from gateway.system.whole_files import write_at_once

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
    text = _HEAD + "".join(line for limit in ordered for line in _rule(limit, until))
    _, mistakes = files.read(text, "recommendations")
    if mistakes:
        raise InternalError(f"a recommendation is no rule: {mistakes[0]}")
    return text


def _rule(limit: Limit, until: date) -> list[str]:
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
    lines = yaml.safe_dump([rule], sort_keys=False, allow_unicode=False, width=1000)
    body = "".join(f"  {line}\n" for line in lines.splitlines())
    return [f"  # {evidence}\n", body]


def identifier(tenant: str, what: What) -> str:
    """Return the id of a rule: readable, and another one for each tenant."""
    kept = "".join(it if it.isascii() and it.isalnum() else "-" for it in tenant)[:24].strip("-")
    digest = hashlib.blake2s(tenant.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    return f"{RECOMMENDED}{kept or 'tenant'}.{digest}.{what.replace('.', '-')}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def write(path: Path, text: str | None) -> bool:
    """Write a file at once, or remove it; return whether it has changed."""
    before = path.read_text() if path.exists() else None
    if before == text:
        return False
    if text is None:
        path.unlink()
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    write_at_once(path, text)
    return True


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
