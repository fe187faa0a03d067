"""The rules in force, and every open producer and consumer under the limits that they set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.limiter import Limiter
from gateway.policy.limits import Applied, Dimension
from gateway.policy.rules import Dimension as Limited

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gateway.policy.matching import AppliedLimit, RuleSet, Subject
    from gateway.wire.contract import Account

METERED = {
    Limited.PUBLISH_MESSAGES: Dimension.MESSAGES,
    Limited.PUBLISH_BYTES: Dimension.BYTES,
}
"""What an account's counters are held to."""


class Key(NamedTuple):
    """What one limit of a rule is for: the values of what the rule is `per`."""

    rule: str
    values: tuple[str, ...]


class Shaping:
    """One for a process: a limit is shared by all listeners that its rule is for."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._subjects: dict[Account, Subject] = {}
        self.limiter = Limiter()
        self.generation = 1

    def admit(self, account: Account, subject: Subject, now: float) -> None:
        """Put a new account under its limits."""
        self._subjects[account] = subject
        self._place(account, subject, now)

    def release(self, account: Account, now: float) -> None:
        """The account is over."""
        if self._subjects.pop(account, None) is not None:
            self.limiter.release(account, now)

    def adopt(self, rules: RuleSet) -> tuple[Account, ...]:
        """Put other rules in force: new accounts have them at once; those that are open, which are
        answered, when each is renewed."""
        self._rules = rules
        self.generation += 1
        return tuple(self._subjects)

    def renew(self, account: Account, now: float) -> None:
        """Put an account under the rules in force, unless it is over or has them. Limits that are
        the same in both keep what was earned or is owed."""
        subject = self._subjects.get(account)
        if subject is not None and account.generation != self.generation:
            self._place(account, subject, now)

    def _place(self, account: Account, subject: Subject, now: float) -> None:
        account.generation = self.generation
        limits = self._rules.limits(subject, account.action)
        self.limiter.admit(account, tuple(_applied(limits)), now)


def _applied(limits: Iterable[AppliedLimit]) -> Iterator[Applied]:
    for limit in limits:
        dimension = METERED.get(limit.dimension)
        if dimension is not None:
            key = Key(limit.rule.id, limit.key)
            yield Applied(key, dimension, limit.rate, limit.burst, limit.mode == "shadow")
