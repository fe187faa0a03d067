"""The rules in force, and every open producer and consumer under the limits that they set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gateway.policy.events import PATIENCE, Events
from gateway.policy.keys import Key, Kind, identity_of, on_loss_of
from gateway.policy.limiter import Limiter, own_meter
from gateway.policy.limits import Applied, Unit
from gateway.policy.numbers import Numbers
from gateway.policy.rules import ACTION_OF, Dimension
from gateway.telemetry.figures import RuleFigures
from gateway.wire.account import Action, Patience
from gateway.wire.contract import Denial, Refusal
from gateway.wire.services import Again

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from gateway.policy.limits import Limit
    from gateway.policy.matching import AppliedLimit, RuleSet
    from gateway.policy.supply import Metered, Supply
    from gateway.wire.account import Account
    from gateway.wire.subject import Subject

METERED = {
    Dimension.PUBLISH_MESSAGES: Unit.MESSAGES,
    Dimension.PUBLISH_BYTES: Unit.BYTES,
    Dimension.DISPATCH_MESSAGES: Unit.MESSAGES,
    Dimension.DISPATCH_BYTES: Unit.BYTES,
}
"""What an account's counters are held to."""

AppliedLimits = tuple["AppliedLimit", ...]


class Shaping:
    """One for a process: a limit is shared by all listeners that its rule is for, and with other
    processes where there is a `supply`.

    `paced`: what may be done only so often, by some rule.
    """

    def __init__(self, rules: RuleSet, supply: Supply | None = None) -> None:
        self._accounts: dict[Account, None] = {}  # in the order in which they were opened
        self._supply = supply
        self.limiter = Limiter(self._forget, self._metered)
        self.numbers = Numbers()
        self.events = Events(supply)
        self._past: dict[Kind, RuleFigures] = {}  # of limits that are there no more
        self.generation = 1
        self._use(rules)

    def admit(self, account: Account, now: float, *, again: bool = False) -> Denial | None:
        """Put a new account under its limits, where they let it be opened. `again`: as what was
        open just now, so that it is rejected by no rule; a reset would otherwise be one's end."""
        limits = self._rules.limits(account.subject, account.action)
        denial = self._full(limits)
        if denial is None and account.action is Action.PRODUCE and not again:
            denial = self._rejected(limits, now)
        if denial is None:
            self._accounts[account] = None
            self._place(account, limits, now)
        return denial

    def release(self, account: Account, now: float) -> None:
        """The account is over."""
        if account in self._accounts:
            del self._accounts[account]
            self.limiter.release(account, now)
            self.numbers.release(account)

    def wait(
        self, action: Action, subject: Subject, now: float, again: Again | None = None
    ) -> float | Again | Denial:
        """Return in how many seconds the subject may do this; see `wire.services.Services`."""
        limits = self._rules.limits(subject, action)
        paced = tuple(it for it in limits if it.dimension in PATIENCE)
        answer = self.events.wait(paced, now, again)
        return answer if isinstance(answer, float | Again) else _too_often(answer)

    def supplied(self, owners: Iterable[Hashable] | None, now: float) -> None:
        """Shared limits learned what they may hand out; None: all did."""
        self.limiter.supplied(owners, now)

    def adopt(self, rules: RuleSet) -> tuple[Account, ...]:
        """Put other rules in force: new accounts have them at once; those that are open, which are
        answered, when each is renewed."""
        self._use(rules)
        self.generation += 1
        return tuple(self._accounts)

    def renew(self, account: Account, now: float) -> None:
        """Put an account under the rules in force, unless it is over or has them. Limits that are
        the same in both keep what was earned or is owed."""
        if account in self._accounts and account.generation != self.generation:
            self._place(account, self._rules.limits(account.subject, account.action), now)

    def figures(self, now: float) -> list[RuleFigures]:
        """What the limits of each rule did since the start, all taken together."""
        self.limiter.observe(now)
        found = dict(self._past)
        for limit in self.limiter.limits():
            kind = _kind(limit)
            found[kind] = _added(found.get(kind), limit, kind)
        return [*found.values(), *self.events.figures(now), *self.numbers.figures()]

    def _metered(self, applied: Applied) -> Metered:
        if self._supply is None or applied.on_loss is None:
            return own_meter(applied)
        assert isinstance(applied.key, Key)
        figures = (applied.rate, applied.saved, applied.on_loss)
        return self._supply.meter(applied.key.text, *figures, owner=applied.identity)

    def _forget(self, limit: Limit) -> None:
        kind = _kind(limit)
        self._past[kind] = _added(self._past.get(kind), limit, kind)._replace(limits=0, waiting=0)

    def _use(self, rules: RuleSet) -> None:
        self._rules = rules
        limited = rules.dimensions()
        self.paced = frozenset(Action(ACTION_OF[it]) for it in PATIENCE if it in limited)

    def _place(self, account: Account, limits: AppliedLimits, now: float) -> None:
        account.generation = self.generation
        account.patience = _patience(limits)
        self.limiter.admit(account, tuple(_applied(limits)), now, _client(account.subject))
        self.numbers.place(account, _plain(limits))

    def _full(self, limits: AppliedLimits) -> Denial | None:
        """By a plain number."""
        limit = self.numbers.full(_plain(limits))
        if limit is None:
            return None
        return Denial(Refusal.FULL, f"rule {limit.rule.id} allows {limit.rate:g} {_words(limit)}")

    def _rejected(self, limits: AppliedLimits, now: float) -> Denial | None:
        """By a rule that rejects, and has no room."""
        rejecting = (it for it in limits if it.rule.action == "reject" and it.mode == "enforce")
        for limit in rejecting:
            if limit.dimension in METERED and self.limiter.is_spent(_one(limit), now):
                text = f"rule {limit.rule.id} has no room for {_words(limit)} now"
                return Denial(Refusal.FULL, text)
        return None


WAITING = 5.0
"""Seconds of the rate that may wait where a rule rejects what overflows: clients notice soon that
they send too much, and what waits has its receipt long before they give up."""


def _patience(limits: AppliedLimits) -> Patience | None:
    rejecting = [it for it in limits if it.rule.on_overflow == "reject" and it.mode == "enforce"]
    if not rejecting:
        return None

    def least(what: Dimension) -> float:
        return min((it.rate for it in rejecting if it.dimension is what), default=math.inf)

    messages, size = least(Dimension.PUBLISH_MESSAGES), least(Dimension.PUBLISH_BYTES)
    return Patience(WAITING * messages, WAITING * size)


def _client(subject: Subject) -> Hashable:
    """Whose account it is: what clients cannot make up."""
    return subject.principal or subject.host


def _plain(limits: AppliedLimits) -> AppliedLimits:
    return tuple(limit for limit in limits if limit.dimension.is_number)


def _applied(limits: Iterable[AppliedLimit]) -> Iterator[Applied]:
    return (_one(limit) for limit in limits if limit.dimension in METERED)


def _one(limit: AppliedLimit) -> Applied:
    key, shadow = identity_of(limit)
    unit = METERED[limit.dimension]
    return Applied(key, unit, limit.rate, limit.burst, shadow, on_loss_of(limit))


def _too_often(limit: AppliedLimit) -> Denial:
    rejects = limit.dimension is Dimension.PRODUCER_CREATIONS and limit.rule.action == "reject"
    refusal = Refusal.FULL if rejects else Refusal.TOO_OFTEN
    return Denial(refusal, f"rule {limit.rule.id} allows no more {_words(limit)} now")


def _words(limit: AppliedLimit) -> str:
    return limit.dimension.replace("_", " ")


def _kind(limit: Limit) -> Kind:
    key = limit.applied.key
    assert isinstance(key, Key)
    return key.rule, key.what, limit.applied.shadow


def _added(figures: RuleFigures | None, limit: Limit, kind: Kind) -> RuleFigures:
    rule, what, shadow = kind
    before = figures or RuleFigures(rule, what.value, "shadow" if shadow else "enforce")
    return before._replace(
        limits=before.limits + 1,
        waiting=before.waiting + limit.waiting,
        waits=before.waits + limit.waits,
        seconds=before.seconds + limit.waited,
        held=before.held + limit.held,
    )
