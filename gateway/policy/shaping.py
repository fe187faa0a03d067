"""The rules in force, and every open producer and consumer under the limits that they set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.figures import RuleFigures
from gateway.policy.limiter import Limiter
from gateway.policy.limits import Applied, Dimension
from gateway.policy.rules import Dimension as Limited

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gateway.policy.limits import Limit
    from gateway.policy.matching import AppliedLimit, RuleSet, Subject
    from gateway.wire.contract import Account

METERED = {
    Limited.PUBLISH_MESSAGES: Dimension.MESSAGES,
    Limited.PUBLISH_BYTES: Dimension.BYTES,
    Limited.DISPATCH_MESSAGES: Dimension.MESSAGES,
    Limited.DISPATCH_BYTES: Dimension.BYTES,
}
"""What an account's counters are held to."""


class Key(NamedTuple):
    """Which limit it is: of a rule, of what it limits, and for whom (the values of its `per`)."""

    rule: str
    what: Limited
    values: tuple[str, ...]


_Kind = tuple[str, Limited, bool]


class Shaping:
    """One for a process: a limit is shared by all listeners that its rule is for."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._subjects: dict[Account, Subject] = {}
        self.limiter = Limiter(self._forget)
        self._past: dict[_Kind, RuleFigures] = {}  # of limits that are there no more
        self.generation = 1

    def admit(self, account: Account, subject: Subject, now: float) -> None:
        """Put a new account under its limits."""
        self._subjects[account] = subject
        self._place(account, subject, now)

    def release(self, account: Account, now: float) -> None:
        """The account is over."""
        if self._subjects.pop(account, None) is not None:
            self.limiter.release(account, now)

    def adopt(self, rules: RuleSet, now: float) -> Iterator[None]:
        """Put other rules in force: new accounts have them at once, those that are open one with
        each step. Limits that are the same in both keep what was earned or is owed."""
        self._rules = rules
        self.generation += 1
        for account in tuple(self._subjects):
            subject = self._subjects.get(account)  # it may be over by now
            if subject is not None and account.generation != self.generation:
                self._place(account, subject, now)
                yield

    def figures(self, now: float) -> list[RuleFigures]:
        """What the limits of each rule did since the start, all taken together."""
        self.limiter.observe(now)
        found = dict(self._past)
        for limit in self.limiter.limits():
            kind = _kind(limit)
            found[kind] = _added(found.get(kind), limit, kind)
        return list(found.values())

    def _forget(self, limit: Limit) -> None:
        kind = _kind(limit)
        self._past[kind] = _added(self._past.get(kind), limit, kind)._replace(limits=0, waiting=0)

    def _place(self, account: Account, subject: Subject, now: float) -> None:
        account.generation = self.generation
        limits = self._rules.limits(subject, account.action)
        self.limiter.admit(account, tuple(_applied(limits)), now)


def _applied(limits: Iterable[AppliedLimit]) -> Iterator[Applied]:
    for limit in limits:
        dimension = METERED.get(limit.dimension)
        if dimension is not None:
            key = Key(limit.rule.id, limit.dimension, limit.key)
            yield Applied(key, dimension, limit.rate, limit.burst, limit.mode == "shadow")


def _kind(limit: Limit) -> _Kind:
    key = limit.applied.key
    assert isinstance(key, Key)
    return key.rule, key.what, limit.applied.shadow


def _added(figures: RuleFigures | None, limit: Limit, kind: _Kind) -> RuleFigures:
    rule, what, shadow = kind
    before = figures or RuleFigures(rule, what.value, "shadow" if shadow else "enforce")
    return before._replace(
        limits=before.limits + 1,
        waiting=before.waiting + limit.waiting,
        waits=before.waits + limit.waits,
        seconds=before.seconds + limit.waited,
        held=before.held + limit.held,
    )
