"""Which limits of rules can be tried on history, and what they would have done. No Spark.

Records tell what each tenant moved in an interval, and the most in one of its seconds. So limits
for tenants can be tried, by name or one for each; not those by client, topic or subscription, nor
of requests and numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gateway.pipeline.limits.deciding import What
from gateway.policy.rules import Rule, is_pattern


@dataclass(frozen=True, slots=True)
class Bucket:
    """A limit for each of some tenants: `rate` per second and `burst`, in messages or bytes.
    `tenants`: empty for each that there is."""

    rule: str
    what: What
    tenants: tuple[str, ...]
    rate: float
    burst: float


@dataclass(frozen=True, slots=True)
class Untried:
    """A rule that cannot be tried, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """What a limit would have done.

    `intervals`: with traffic; `exceeded`: those in which something would have waited; `waited`:
    those in which frames did wait for rules, so that demand was higher than what passed.
    `amount`: messages or bytes; `beyond`: how many of them would have waited. `seconds`: in which
    somebody would have waited. `worst_day`: with most of these; None without any.
    """

    rule: str
    what: What
    intervals: int
    exceeded: int
    waited: int
    amount: float
    beyond: float
    seconds: float
    worst_day: str | None
    worst_seconds: float

    @property
    def part(self) -> float:
        """Return the part of the traffic that would have waited."""
        return self.beyond / self.amount if self.amount else 0.0


def buckets(rules: Iterable[Rule]) -> Iterator[Bucket | Untried]:
    """Yield the limits of rules that can be tried, and the rules that cannot."""
    for rule in rules:
        reason = _reason(rule)
        if reason is not None:
            yield Untried(rule.id, reason)
            continue
        for dimension, rate in rule.limits:
            if dimension in {*What}:
                burst = rule.burst_of(dimension, rate)
                yield Bucket(rule.id, What(dimension), rule.match.tenant, rate, burst)
            else:
                yield Untried(rule.id, f"records do not tell what {dimension} would do")


def _reason(rule: Rule) -> str | None:
    """Return why a rule cannot be tried."""
    if rule.limit is None:
        return "it limits nothing"
    others = sorted({*rule.match.model_fields_set, *rule.per} - {"tenant"})
    if others:
        return f"it is by {others[0]}, which intervals are not told apart by"
    if any(map(is_pattern, rule.match.tenant)):
        return "it names tenants by a pattern"
    if not rule.per and len(rule.match.tenant) != 1:
        return "its tenants share one limit"
    return None
