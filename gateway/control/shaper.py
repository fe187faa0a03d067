"""Applies the rules' limits to the data plane: `policy` computes who may send, and the reactor
grants the allowance.

This module is imported only if there are rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.policy.shaping import Shaping
from gateway.wire.account import Action, Right
from gateway.wire.contract import Denial

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator

    from gateway.plane.reactor import Reactor
    from gateway.policy.access import Access
    from gateway.policy.matching import RuleSet
    from gateway.policy.supply import Supply
    from gateway.telemetry.figures import RuleFigures
    from gateway.wire.account import Account, Burst
    from gateway.wire.services import Again
    from gateway.wire.subject import Subject


OBSERVED = 1.0
"""Seconds between two observations of shadow limits. Traffic between them counts as evenly
spread."""


_RIGHTS = {Action.PRODUCE: Right.PRODUCE, Action.CONSUME: Right.CONSUME}
"""The right that an open account's client needs, by action."""


class Shaper:
    """The limits of a process, and the reactor that they are applied to. While accounts wait, a
    deadline of the reactor grants them allowance; while no account waits, there is no deadline."""

    def __init__(
        self,
        rules: RuleSet,
        reactor: Reactor,
        supply: Supply | None = None,
        access: Access | None = None,
    ) -> None:
        self._access = access
        self.shaping = Shaping(rules, supply)
        self._reactor = reactor
        self._next: float | None = None  # when the next round is due
        self._observing = False

    @property
    def paced(self) -> Collection[Action]:
        """Return the actions whose rate of requests some rule limits."""
        return self.shaping.paced

    def wait(self, action: Action, subject: Subject, again: Again | None) -> float | Again | Denial:
        """Charge an action of a subject to its rate limits. Return the seconds after which the
        subject may do it; an `Again` if that is not known yet; a denial if the wait would be too
        long. See `wire.services.Services`."""
        return self.shaping.wait(action, subject, self._reactor.clock(), again)

    def admit(self, account: Account, *, again: bool) -> Denial | None:
        """Put a new account under the limits that apply to it; return a denial if one of them
        refuses it. `again`: see `wire.services.Services`."""
        now = self._reactor.clock()
        denial = self.shaping.admit(account, now, again=again)
        self._observe_later(now)
        return denial

    def wants(self, account: Account) -> bool:
        """Return whether the account's frame at which the scanner halted may pass now. If not, the
        reactor grants the account allowance later."""
        now = self._reactor.clock()
        if self.shaping.limiter.wants(account, now):
            return True
        self._arm(now)
        return False

    def is_in_debt(self, account: Account) -> bool:
        """Return whether the account, or one of its limits, has a large debt; see
        `wire.services.Services`."""
        return self.shaping.limiter.is_in_debt(account, self._reactor.clock())

    def due_in(self, account: Account) -> float:
        """Return about how many seconds pass until the account has allowance; see
        `wire.services.Services`."""
        return self.shaping.limiter.due_in(account, self._reactor.clock())

    def burst(self, account: Account) -> Burst:
        """Return the messages and bytes that may arrive at once under the account's limits; see
        `wire.services.Services`."""
        return self.shaping.limiter.burst(account)

    def release(self, account: Account) -> None:
        """Remove a closed account from its limits."""
        self.shaping.release(account, self._reactor.clock())

    def figures(self) -> Iterable[RuleFigures]:
        """Return, for each rule, the totals of its limits since the start, and how full they
        are."""
        return self.shaping.figures(self._reactor.clock())

    def adopt(self, rules: RuleSet) -> Iterator[None]:
        """Put these rules in force in place of the earlier ones: for new accounts at the iterator's
        first step, and for one open account at each step, which also revokes the account if the
        rules now deny it. After the last step, schedule the next grants, which may be due earlier
        than under the earlier rules."""
        if self._access is not None:
            self._access.adopt(rules)
        for account in self.shaping.adopt(rules):
            now = self._reactor.clock()
            self.shaping.renew(account, now)
            self._observe_later(now)
            denial = self._denial(account)
            if denial is not None:
                self._reactor.revoke(account, denial)
            yield
        self._arm(self._reactor.clock())

    def _denial(self, account: Account) -> Denial | None:
        """Return a denial if the client of an open account has lost its right; else None."""
        if self._access is None:
            return None
        decision = self._access.refuse(_RIGHTS[account.action], account.subject)
        # The policy agent decides only when an account is opened.
        return decision if isinstance(decision, Denial) else None

    def supplied(self, owners: Iterable[Hashable] | None) -> None:
        """Reschedule the grants of shared limits, because the store has responded to them.
        `owners`: the identities of these limits; None: all limits."""
        now = self._reactor.clock()
        self.shaping.limiter.supplied(owners, now)
        self._arm(now)

    def _arm(self, now: float) -> None:
        """Add a deadline for the next round. A later deadline that was added before stays; its
        round will find less to do."""
        when = self.shaping.limiter.next_time(now)
        if when is not None and (self._next is None or when < self._next):
            self._next = when
            self._reactor.deadlines.add(when, self._round)

    def _round(self, now: float) -> None:
        self._next = None
        for account, messages, size in self.shaping.limiter.hold_round(now):
            self._reactor.grant(account, messages, size)
        self._arm(now)

    # -- shadows -----------------------------------------------------------------------------

    def _observe_later(self, now: float) -> None:
        if self.shaping.limiter.has_shadows and not self._observing:
            self._observing = True
            self._reactor.deadlines.add(now + OBSERVED, self._observe)

    def _observe(self, now: float) -> None:
        if self.shaping.limiter.observe_some(now):
            self._reactor.deadlines.add(now, self._observe)
            return
        self._observing = False
        self._observe_later(now)
