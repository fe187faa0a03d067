"""Applies the limits of the rules in force to requests, and to open producers and consumers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gateway.policy.concurrency import ConcurrencyLimiter
from gateway.policy.dimensions import Dimension
from gateway.policy.keys import Key, Kind, identity_of, kind_of, on_loss_of
from gateway.policy.limiter import Limiter, local_meter
from gateway.policy.limits import LimitSpec
from gateway.policy.requests import RequestLimiter
from gateway.policy.supply import used_share
from gateway.policy.tallies import filled, no_figures
from gateway.wire.account import Action, Patience
from gateway.wire.contract import Denial, Refusal
from gateway.wire.services import Again

if TYPE_CHECKING:
    from gateway.policy.limits import Limit
    from gateway.policy.matching import AppliedLimit, RuleSet
    from gateway.policy.supply import Metered, Supply
    from gateway.telemetry.figures import RuleFigures
    from gateway.wire.account import Account
    from gateway.wire.subject import Subject

MOST_QUEUED = 5.0
"""Seconds of the rate that may wait where a rule rejects what overflows: clients notice soon that
they send too much, and what waits has its receipt long before they give up."""

AppliedLimits = tuple["AppliedLimit", ...]


class Shaping:
    """The limits of one process. If a rule matches several listeners, these share its limits. With
    a `supply`, other processes share the limits too.

    `paced`: the actions whose rate of requests some rule limits.
    """

    def __init__(self, rules: RuleSet, supply: Supply | None = None) -> None:
        self._accounts: dict[Account, None] = {}  # in the order in which they were opened
        self._supply = supply
        self.limiter = Limiter(self._keep_figures, self._make_meter)
        self.concurrency = ConcurrencyLimiter()
        self.requests = RequestLimiter(supply)
        self._past: dict[Kind, RuleFigures] = {}  # of limits that were forgotten
        self.generation = 1
        self._use(rules)

    def admit(self, account: Account, now: float, *, again: bool = False) -> Denial | None:
        """Put a new account under the limits that apply to it; return a denial if one of them
        refuses it.

        `again`: the account replaces one that has just been closed. A rule with `action: reject`
        does not refuse such an account, because otherwise a producer could not come back after it
        was reset.
        """
        limits = self._rules.limits(account.subject, account.action)
        denial = self._full(limits)
        if denial is None and account.action is Action.PRODUCE and not again:
            denial = self._rejected(limits, now)
        if denial is None:
            self._accounts[account] = None
            self._place(account, limits, now)
        return denial

    def release(self, account: Account, now: float) -> None:
        """Remove a closed account from its limits."""
        if account in self._accounts:
            del self._accounts[account]
            self.limiter.release(account, now)
            self.concurrency.release(account)

    def wait(
        self, action: Action, subject: Subject, now: float, again: Again | None = None
    ) -> float | Again | Denial:
        """Charge an action of a subject to its rate limits. Return the seconds after which the
        subject may do it; an `Again` if that is not known yet; a denial if the wait would be too
        long. `again`: the `Again` that the last call for this action returned, if it did."""
        limits = self._rules.limits(subject, action)
        limits = tuple(limit for limit in limits if limit.dimension.longest_wait is not None)
        answer = self.requests.wait(limits, now, again)
        return answer if isinstance(answer, float | Again) else _too_often(answer)

    def adopt(self, rules: RuleSet) -> tuple[Account, ...]:
        """Put these rules in force in place of the earlier ones. They hold for new accounts at
        once. Return the open accounts; the caller must pass each of them to `renew`."""
        self._use(rules)
        self.generation += 1
        return tuple(self._accounts)

    def renew(self, account: Account, now: float) -> None:
        """Put an account under the rules in force, unless the account is closed or is under them
        already. A limit that is the same in the earlier rules keeps its unused allowance and its
        debt."""
        if account in self._accounts and account.generation != self.generation:
            self._place(account, self._rules.limits(account.subject, account.action), now)

    def figures(self, now: float) -> list[RuleFigures]:
        """Return, for each rule and limited quantity, the totals since the start (waits, refusals),
        and the fullest limit's used share."""
        self.limiter.observe(now)
        by_kind = dict(self._past)
        for limit in self.limiter.limits():
            kind = _kind(limit)
            sums = _added(by_kind.get(kind) or no_figures(kind), limit)
            assert isinstance(limit.spec.key, Key)
            by_kind[kind] = filled(sums, limit.spec.key, used_share(limit.meter, now))
        return [*by_kind.values(), *self.requests.figures(now), *self.concurrency.figures()]

    def _make_meter(self, spec: LimitSpec) -> Metered:
        if self._supply is None or spec.on_loss is None:
            return local_meter(spec)
        assert isinstance(spec.key, Key)
        figures = (spec.rate, spec.metered_burst, spec.on_loss)
        return self._supply.meter(spec.key.text, *figures, owner=spec.identity)

    def _keep_figures(self, limit: Limit) -> None:
        """Keep the figures of a limit that is forgotten."""
        kind = _kind(limit)
        past = _added(self._past.get(kind) or no_figures(kind), limit)
        self._past[kind] = past._replace(limits=0, waiting=0)

    def _use(self, rules: RuleSet) -> None:
        self._rules = rules
        limited = rules.dimensions()
        self.paced = frozenset(
            dimension.action for dimension in limited if dimension.longest_wait is not None
        )

    def _place(self, account: Account, limits: AppliedLimits, now: float) -> None:
        account.generation = self.generation
        account.patience = _patience(limits)
        specs = tuple(_spec(limit) for limit in limits if limit.dimension.unit is not None)
        # A client is known by what it cannot make up.
        client = account.subject.principal or account.subject.host
        self.limiter.admit(account, specs, now, client)
        self.concurrency.admit(account, _concurrency_limits(limits))

    def _full(self, limits: AppliedLimits) -> Denial | None:
        """Return the denial of a concurrency limit that is reached."""
        limit = self.concurrency.find_full(_concurrency_limits(limits))
        if limit is None:
            return None
        return Denial(Refusal.FULL, f"rule {limit.rule.id} allows {limit.rate:g} {_words(limit)}")

    def _rejected(self, limits: AppliedLimits, now: float) -> Denial | None:
        """Return the denial of a rule with `action: reject` whose limit has no units."""
        for limit in limits:
            if limit.rule.action != "reject" or limit.mode != "enforce":
                continue
            if limit.dimension.unit is not None and self.limiter.is_spent(_spec(limit), now):
                text = f"rule {limit.rule.id} has no room for {_words(limit)} now"
                return Denial(Refusal.FULL, text)
        return None


def _patience(limits: AppliedLimits) -> Patience | None:
    """Return what may wait before messages are refused; None if no rule refuses any."""
    rejecting = [
        limit for limit in limits if limit.rule.on_overflow == "reject" and limit.mode == "enforce"
    ]
    if not rejecting:
        return None

    def least(what: Dimension) -> float:
        return min((limit.rate for limit in rejecting if limit.dimension is what), default=math.inf)

    messages, size = least(Dimension.PUBLISH_MESSAGES), least(Dimension.PUBLISH_BYTES)
    return Patience(MOST_QUEUED * messages, MOST_QUEUED * size)


def _concurrency_limits(limits: AppliedLimits) -> AppliedLimits:
    return tuple(limit for limit in limits if limit.dimension.is_concurrency)


def _spec(limit: AppliedLimit) -> LimitSpec:
    key, shadow = identity_of(limit)
    unit = limit.dimension.unit
    assert unit is not None
    return LimitSpec(key, unit, limit.rate, limit.burst, shadow, on_loss_of(limit))


def _too_often(limit: AppliedLimit) -> Denial:
    rejects = limit.dimension is Dimension.PRODUCER_CREATIONS and limit.rule.action == "reject"
    refusal = Refusal.FULL if rejects else Refusal.TOO_OFTEN
    return Denial(refusal, f"rule {limit.rule.id} allows no more {_words(limit)} now")


def _words(limit: AppliedLimit) -> str:
    return limit.dimension.replace("_", " ")


def _kind(limit: Limit) -> Kind:
    assert isinstance(limit.spec.key, Key)
    return kind_of((limit.spec.key, limit.spec.shadow))


def _added(before: RuleFigures, limit: Limit) -> RuleFigures:
    return before._replace(
        limits=before.limits + 1,
        waiting=before.waiting + limit.waiting,
        waits=before.waits + limit.waits,
        seconds=before.seconds + limit.waited,
        held=before.held + limit.held,
    )
