"""All limits of a process: who is under which, and who may go on.

An account that is under a limit has an allowance only as a *lease*. When it has used that up its
next frame stops, and asks (`wants`): mostly it has another lease at once. If not it waits, and
`lease` gives it one by turn. So nothing is done for accounts that are idle, and nothing by a timer
while nobody waits.

What passes in any interval is at most rate × time, the burst, what was on lease when the interval
began, and one frame for each account: a frame passes whole, however little is left.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from gateway.policy.limits import LEASE, Applied, Dimension, Limit
from gateway.policy.members import Grant, Member, endless

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

    from gateway.wire.contract import Account

    Identity = tuple[Hashable, Dimension, bool]

STEP = 0.01
"""Seconds between two rounds at least: timers are late by 1 ms or 2, and a round has its cost."""


class Limiter:
    """`wants`, `lease` and `next_time` are for producers and consumers alike: a grant to a consumer
    is of messages that may be asked for."""

    def __init__(self) -> None:
        self._limits: dict[Identity, Limit] = {}
        self._members: dict[Account, Member] = {}
        self._shaded: dict[Member, None] = {}
        self._contended: dict[Limit, None] = {}  # where somebody waits
        self._granted: dict[Member, None] = {}  # by the last round: did it suffice?
        self._freed: dict[Account, None] = {}  # waited, and is under no limit any more
        self._forgettable: list[tuple[float, int, Identity]] = []
        self._last_round = float("-inf")

    def __len__(self) -> int:
        return len(self._limits)

    def limits(self) -> Iterator[Limit]:
        """All limits, for whoever shows them. They may change between any two."""
        yield from tuple(self._limits.values())

    # -- accounts ----------------------------------------------------------------------------

    def admit(self, account: Account, applied: Collection[Applied], now: float) -> None:
        """Put an account under limits, or under others than before: so rules are reloaded.

        A limit with the same key, dimension and mode is the same one, whatever its figures.
        """
        self._forget(now)
        limits = dict.fromkeys(self._limit(it, now) for it in applied)
        for limit in limits:
            limit.accounts += 1
        before = self._members.get(account)
        # What was granted to it may be on its way still, and is void then.
        busy = account.queued > 0 or account in self._freed
        busy = busy or (before is not None and self._is_busy(before))
        self.release(account, now)
        if not limits:
            self._free(account, busy=busy)
            return
        member = self._enrol(account, tuple(limits))
        if before is not None:
            member.tags.update({it: tag for it, tag in before.tags.items() if it in member.tags})
        if not member.limits:
            self._free(account, busy=busy)
        elif busy:
            self._wait_anew(member, member.limits[0], now)

    def release(self, account: Account, now: float) -> None:
        """The account is over, or under other limits from now on. Its lease is returned."""
        self._freed.pop(account, None)
        member = self._members.pop(account, None)
        if member is None:
            return
        if member.waits_at is not None:
            self._take_out(member, member.waits_at, now)
        self._granted.pop(member, None)
        self._shaded.pop(member, None)
        member.give_back(now)
        for limit in member.shadows:
            limit.shade(now)
        for limit in (*member.limits, *member.shadows):
            limit.accounts -= 1
            self._rest(limit, now)

    def wants(self, account: Account, now: float) -> bool:
        """A frame of this account is stopped: may it pass? If not it waits for `lease`."""
        member = self._members.get(account)
        if member is None or not account.held or self._is_busy(member):
            return not account.held
        member.settle(now)
        for limit in member.limits:
            self._sweep(limit, now)
        refusing = self._crowded(member) or member.refused_by(now)
        if refusing is not None:
            self._wait_anew(member, refusing, now)
            return False
        for limit in member.limits:
            limit.pass_on(member)
        granted = member.lend(now)
        account.grant(granted.messages, granted.bytes)
        return not account.held

    # -- rounds ------------------------------------------------------------------------------

    def lease(self, now: float) -> list[Grant]:
        """One round: what accounts that waited may have now. The caller grants it to them."""
        self._last_round = now
        grants = [endless(account) for account in self._freed]
        self._freed.clear()
        self._look_again(now)
        for limit in tuple(self._contended):
            self._sweep(limit, now)
            grants += self._serve(limit, now)
        return grants

    def next_time(self, now: float) -> float | None:
        """When to hold the next round; None: nobody waits."""
        if self._freed:
            return now
        times = [limit.meter.ready_at(1, now) for limit in self._contended]
        times += [limit.looked + LEASE for limit in self._contended if limit.leased]
        if self._granted:
            times.append(now)
        return max(min(times), self._last_round + STEP, now) if times else None

    def observe(self, now: float) -> None:
        """Charge shadow limits; to be called now and then, and before they are shown."""
        for member in self._shaded:
            member.settle(now)
        for limit in {limit for member in self._shaded for limit in member.shadows}:
            limit.shade(now)

    def _look_again(self, now: float) -> None:
        """Those that got a lease and are held again have more to send: they wait again."""
        granted, self._granted = self._granted, {}
        for member in granted:
            member.settle(now)
            if member.is_due:
                self._granted[member] = None
            elif member.account.held:
                short = (it for it in member.limits if not member.has_left(it.applied.dimension))
                self._wait(member, next(short), now)

    def _sweep(self, limit: Limit, now: float) -> None:
        """Leases that were not used for a while are wanted by those who wait."""
        if now < limit.looked + LEASE:
            return
        limit.looked = now
        for member in tuple(limit.leased):
            member.settle(now)
            if now >= member.used_at + LEASE and not self._is_busy(member):
                member.give_back(now)

    def _serve(self, limit: Limit, now: float) -> Iterator[Grant]:
        """By turn, while there is room. Who needs another limit too may have to wait there."""
        for member in limit.round(now):
            self._take_out(member, limit, now)
            refusing = member.refused_by(now)
            if refusing is not None:
                self._wait_anew(member, refusing, now)
            else:
                self._granted[member] = None
                yield member.lend(now)

    # -- waiting -----------------------------------------------------------------------------

    def _is_busy(self, member: Member) -> bool:
        """It has frames in a queue, or may have: none may overtake them."""
        freed = member.account in self._freed
        return freed or member.waits_at is not None or member in self._granted

    @staticmethod
    def _crowded(member: Member) -> Limit | None:
        """Where others wait already, a newcomer does too."""
        return next((limit for limit in member.limits if limit.waiting), None)

    def _wait_anew(self, member: Member, limit: Limit, now: float) -> None:
        limit.welcome(member)
        self._wait(member, limit, now)

    def _wait(self, member: Member, limit: Limit, now: float) -> None:
        limit.put(member, now)
        self._contended[limit] = None

    def _take_out(self, member: Member, limit: Limit, now: float) -> None:
        limit.take_out(member, now)
        if not limit.waiting:
            del self._contended[limit]

    # -- membership --------------------------------------------------------------------------

    def _enrol(self, account: Account, limits: tuple[Limit, ...]) -> Member:
        enforced = tuple(it for it in limits if not it.applied.shadow)
        member = Member(account, enforced, tuple(it for it in limits if it.applied.shadow))
        self._members[account] = member
        if member.shadows:
            self._shaded[member] = None
        if enforced:
            account.hold()
        return member

    def _free(self, account: Account, *, busy: bool) -> None:
        """Nothing holds it. What waits in its queue must not be overtaken: that goes by a round."""
        if busy:
            self._freed[account] = None
        else:
            granted = endless(account)
            account.grant(granted.messages, granted.bytes)

    def _limit(self, applied: Applied, now: float) -> Limit:
        limit = self._limits.get(applied.identity)
        if limit is None:
            limit = self._limits[applied.identity] = Limit(applied, now)
        limit.change(applied, now)
        return limit

    def _rest(self, limit: Limit, now: float) -> None:
        """A limit that nobody is under is kept until its meter is full: whoever opens a producer
        anew has no new burst."""
        if not limit.accounts and not limit.forgettable:
            limit.forgettable = True
            entry = (limit.meter.full_at(now), id(limit), limit.applied.identity)
            heappush(self._forgettable, entry)

    def _forget(self, now: float) -> None:
        while self._forgettable and self._forgettable[0][0] <= now:
            _, _, identity = heappop(self._forgettable)
            limit = self._limits[identity]
            limit.forgettable = False
            if limit.accounts:
                continue
            if limit.meter.full_at(now) <= now:
                del self._limits[identity]
            else:
                self._rest(limit, now)
