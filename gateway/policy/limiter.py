"""All limits of a process: who is under which, and who may go on.

An account that is under a limit has an allowance only as a *lease*. When it has used that up its
next frame stops, and asks (`wants`): mostly it has another lease at once. If not it waits, and
`lease` gives it one by turn. So nothing is done for accounts that are idle, and nothing by a timer
while nobody waits.

What passes in any interval is at most rate × time, the burst, what was on lease when the interval
began, and one frame for each account: a frame passes whole, however little is left. What it takes
beyond its lease is charged before anybody else has another one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING

from gateway.policy.debts import Debts
from gateway.policy.gcra import Meter
from gateway.policy.keys import FORGOTTEN_AT_ONCE, LIMIT_SIZE, MOST_RESTING, Key
from gateway.policy.limits import LEASE_SECONDS, Applied, Grant, Limit, Member, Unit, endless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator

    from gateway.policy.supply import Metered
    from gateway.wire.account import Account

    Identity = tuple[Hashable, Unit, bool]

STEP = 0.01
"""Seconds between two rounds at least: timers are late by 1 ms or 2, and a round has its cost."""

AT_ONCE = 100
"""Accounts and limits that are served in one round: 20 µs for each, so a turn of the data plane."""

OBSERVED_AT_ONCE = 500
"""Accounts, or limits, that are looked at under shadow rules in one go: half a turn."""

PAUSE = 0.001
"""Seconds after a round that did not come to an end: others have their turn meanwhile."""


def own_meter(applied: Applied) -> Metered:
    """What a limit hands out of, where it is shared with nobody."""
    return Meter(applied.rate, applied.saved)


class Limiter:
    """`wants`, `lease` and `next_time` are for producers and consumers alike: a grant to a consumer
    is of messages that may be asked for. `forgotten` is told of a limit that is there no more.
    `metered` makes what a limit hands out of. `most_resting`: bytes of limits that nobody is under.
    """

    def __init__(
        self,
        forgotten: Callable[[Limit], None] | None = None,
        metered: Callable[[Applied], Metered] = own_meter,
        most_resting: int = MOST_RESTING,
    ) -> None:
        self._most_resting = most_resting
        self._resting = 0  # bytes
        self._forgotten = forgotten
        self._metered = metered
        self._limits: dict[Identity, Limit] = {}
        self._debts = Debts()
        self._members: dict[Account, Member] = {}
        self._latest: Member | None = None  # who had a lease last without waiting
        self._shaded: dict[Member, None] = {}
        self._unsettled: list[Member] = []  # accounts that are still to be observed this time
        self._unshaded: dict[Limit, None] = {}  # their limits, which are charged behind them
        # When each limit is served next at which somebody waits, or has got a lease by its turn.
        self._due: list[tuple[float, int, Limit]] = []
        self._tickets = count()
        self._freed: dict[Account, None] = {}  # waited, and is under no limit any more
        self._forgettable: list[tuple[float, int, Identity]] = []
        self._last_round = float("-inf")

    def __len__(self) -> int:
        return len(self._limits)

    def limits(self) -> Iterator[Limit]:
        """All limits, for whoever shows them. They may change between any two."""
        yield from tuple(self._limits.values())

    # -- accounts ----------------------------------------------------------------------------

    def admit(
        self,
        account: Account,
        applied: Collection[Applied],
        now: float,
        client: Hashable = None,
    ) -> None:
        """Put an account under limits, or under others than before: so rules are reloaded.

        `client`: whose account it is. New accounts of one that owes much do not come first.

        A limit with the same key, unit and mode is the same one, whatever its figures.
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
        member = self._enrol(account, tuple(limits), client)
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
            member.waits_at.take_out(member, now)
        if member.granted_by is not None:
            del member.granted_by.granted[member]
        if self._latest is member:
            self._latest = None
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
        if self._latest is not None and self._latest is not member:
            self._latest.settle(now)
        member.settle(now)
        for limit in member.limits:
            self._sweep(limit, now)
        refusing = self._crowded(member) or member.refused_by(now)
        if refusing is not None:
            self._wait_anew(member, refusing, now)
            return False
        for limit in member.limits:
            limit.pass_on(member, now)
        granted = member.lend(now)
        self._latest = member
        account.grant(granted.messages, granted.bytes)
        return not account.held

    def is_in_debt(self, account: Account, now: float) -> bool:
        """A limit of this account owes much, or this account does there."""
        member = self._members.get(account)
        return member is not None and any(it.is_in_debt(member, now) for it in member.limits)

    def is_spent(self, applied: Applied, now: float) -> bool:
        """Whether a newcomer would have to wait at this limit: others do, or nothing is left."""
        limit = self._limits.get(applied.identity)
        return limit is not None and (limit.waiting > 0 or limit.meter.is_spent(now))

    def supplied(self, identities: Iterable[Hashable] | None, now: float) -> None:
        """The meters of these limits learned something, so who waits may go on; None: of all."""
        for identity in tuple(self._limits) if identities is None else identities:
            limit = self._limits.get(identity)  # type: ignore[call-overload]
            if limit is not None:
                self._schedule(limit, now)

    # -- rounds ------------------------------------------------------------------------------

    def lease(self, now: float) -> Iterator[Grant]:
        """One round: what accounts that waited may have now.

        The caller grants each before it asks for the next: what passes by one is charged before
        there is another. Accounts may come, ask and go meanwhile.
        """
        self._last_round = now
        for account in tuple(self._freed):
            if account in self._freed:
                del self._freed[account]
                yield endless(account)
        left = AT_ONCE
        while left > 0 and self._due and self._due[0][0] <= now:
            when, _, limit = heappop(self._due)
            if when != limit.due:
                continue  # it was put forward
            limit.due = float("-inf")  # those that wait again would have it served twice
            left -= 1
            try:
                self._look_again(limit, now)
                self._sweep(limit, now)
                for grant in self._serve(limit, left, now):
                    left -= 1
                    yield grant
            finally:
                limit.due = float("inf")
                self._schedule(limit, now)

    def next_time(self, now: float) -> float | None:
        """When to hold the next round; None: nobody waits."""
        if self._freed:
            return now
        first = self._first_due()
        if first is None:
            return None
        # The last round was too short for all that were due by then.
        rest = PAUSE if first <= self._last_round else STEP
        return max(first, self._last_round + rest, now)

    @property
    def has_shadows(self) -> bool:
        """Somebody is under a shadow limit, so `observe` has to be called."""
        return bool(self._shaded)

    def observe(self, now: float) -> None:
        """Charge shadow limits; to be called about every second, and before they are shown."""
        self._unsettled, self._unshaded = list(self._shaded), {}
        while self.observe_some(now):
            pass

    def observe_some(self, now: float) -> bool:
        """Do a part of what `observe` does; return whether more is left. A limit is charged when
        all its accounts were looked at."""
        if not self._unsettled and not self._unshaded:
            self._unsettled = list(self._shaded)
        if self._unsettled:
            for member in self._unsettled[-OBSERVED_AT_ONCE:]:
                if member in self._shaded:
                    member.settle(now)
                    self._unshaded.update(dict.fromkeys(member.shadows))
            del self._unsettled[-OBSERVED_AT_ONCE:]
        else:
            for limit in tuple(islice(self._unshaded, OBSERVED_AT_ONCE)):
                del self._unshaded[limit]
                limit.shade(now)
        return bool(self._unsettled or self._unshaded)

    def _look_again(self, limit: Limit, now: float) -> None:
        """Those that got a lease and are held again have more to send: they wait again."""
        granted, limit.granted = limit.granted, {}
        for member in granted:
            member.granted_by = None
            member.settle(now)
            if member.is_due:
                self._awaits_its_end(member, limit)
            elif member.account.held:
                short = (it for it in member.limits if not member.has_left(it.applied.unit))
                self._wait(member, next(short), now)
                member.since = limit.served  # what waits in a queue uses up a lease at once

    @staticmethod
    def _awaits_its_end(member: Member, limit: Limit) -> None:
        """Whether its lease will suffice is seen when the limit is served next."""
        limit.granted[member] = None
        member.granted_by = limit

    def _sweep(self, limit: Limit, now: float) -> None:
        """Leases that were not used for a while are wanted by those who wait."""
        if now < limit.looked + LEASE_SECONDS:
            return
        limit.looked = now
        for member in tuple(limit.leased):
            member.settle(now)
            if now >= member.used_at + LEASE_SECONDS and not self._is_busy(member):
                member.rest(now)

    def _serve(self, limit: Limit, most: int, now: float) -> Iterator[Grant]:
        """By turn, while there is room. Who needs another limit too may have to wait there."""
        if self._latest is not None:
            self._latest.settle(now)
        turns = limit.round(now)
        beyond = 0
        try:
            for member in turns:
                limit.take_out(member, now)
                refusing = member.refused_by(now)
                if refusing is not None:
                    self._wait_anew(member, refusing, now)
                    continue
                self._awaits_its_end(member, limit)
                yield member.lend(now)
                beyond += self._passed_beyond(member, limit, now)
                most -= 1
                if most <= 0 or beyond > limit.meter.available(now):
                    break
        finally:
            turns.close()

    def _passed_beyond(self, member: Member, limit: Limit, now: float) -> int:
        """Charge what a member let pass by its grant; answer what is still to be charged.

        Under a limit that processes share that is all beyond its lease, until it is looked at
        again: a process that asked at once for what it owes would come before the others.
        """
        if self._members.get(member.account) is not member:
            return 0
        if limit.applied.on_loss is not None:
            return member.beyond(limit.applied.unit)
        member.settle(now)
        return 0

    def _schedule(self, limit: Limit, now: float) -> None:
        """Have a limit served when there is room for those who wait, or a lease to be had back, or
        to be looked at; not at once again."""
        when = limit.next_time(now) if limit.is_wanted else limit.due
        if when < limit.due:
            limit.due = when
            heappush(self._due, (when, next(self._tickets), limit))

    def _first_due(self) -> float | None:
        """When the first limit is served; those that were put forward, or that nobody waits at any
        more, are taken out."""
        while self._due:
            when, _, limit = self._due[0]
            if when == limit.due and limit.is_wanted:
                return when
            heappop(self._due)
            if when == limit.due:
                limit.due = float("inf")
        return None

    # -- waiting -----------------------------------------------------------------------------

    def _is_busy(self, member: Member) -> bool:
        """It has frames in a queue, or may have: none may overtake them."""
        freed = member.account in self._freed
        return freed or member.waits_at is not None or member.granted_by is not None

    @staticmethod
    def _crowded(member: Member) -> Limit | None:
        """Where others wait already, a newcomer does too; and where others may wait again, while
        it has had more than they."""
        for limit in member.limits:
            if limit.waiting or (
                limit.granted and member.tags[limit] > limit.clock + LEASE_SECONDS
            ):
                return limit
        return None

    def _wait_anew(self, member: Member, limit: Limit, now: float) -> None:
        limit.welcome(member, now)
        self._wait(member, limit, now)

    def _wait(self, member: Member, limit: Limit, now: float) -> None:
        limit.put(member, now)
        self._schedule(limit, now)

    # -- membership --------------------------------------------------------------------------

    def _enrol(self, account: Account, limits: tuple[Limit, ...], client: Hashable) -> Member:
        enforced = tuple(it for it in limits if not it.applied.shadow)
        shadows = tuple(it for it in limits if it.applied.shadow)
        member = Member(account, enforced, shadows, client)
        for limit in enforced:
            limit.enrol(member)
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
            limit = Limit(applied, self._metered(applied), self._debts, now)
            self._limits[applied.identity] = limit
        if applied != limit.applied:
            if applied.on_loss != limit.applied.on_loss:
                limit.meter = self._metered(applied)
            limit.change(applied, now)
            self._schedule(limit, now)
        return limit

    def _rest(self, limit: Limit, now: float) -> None:
        """A limit that nobody is under is kept until its meter is full: whoever opens a producer
        anew has no new burst."""
        if not limit.accounts and not limit.forgettable:
            limit.forgettable = True
            self._resting += _size(limit)
            entry = (limit.meter.full_at(now), id(limit), limit.applied.identity)
            heappush(self._forgettable, entry)

    def _forget(self, now: float) -> None:
        for _ in range(FORGOTTEN_AT_ONCE):
            if not self._forgettable or (
                self._forgettable[0][0] > now and self._resting <= self._most_resting
            ):
                return
            when, _, identity = heappop(self._forgettable)
            limit = self._limits[identity]
            limit.forgettable = False
            self._resting -= _size(limit)
            if limit.accounts:
                continue
            if limit.meter.full_at(now) <= max(now, when):
                del self._limits[identity]
                self._debts.forget(limit)
                if self._forgotten is not None:
                    self._forgotten(limit)
            else:
                self._rest(limit, now)


def _size(limit: Limit) -> int:
    """Bytes in memory."""
    key = limit.applied.key
    return key.size if isinstance(key, Key) else LIMIT_SIZE
