"""All traffic limits of a process: admits accounts, leases units to them, and serves accounts that
wait.

An account under limits gets its allowance only as *leases* (see `limits`). When a lease is used up,
the scanner halts at the account's next frame, and the session calls `wants`, which usually grants
another lease at once. If a limit has no units, the account waits in the queue of this limit, and
`hold_round` grants leases to waiting accounts in turn. Each limit with waiting accounts has a time
at which it is served next. The heap `_due` has these times, and says when the next round is due. So
idle accounts cost nothing, and while no account waits there is no timer.

Bound: in any interval, at most so many units pass: rate × time, plus the burst, plus the leases
that are unused at the beginning, plus one frame for each account, because a frame passes whole.
Units that were used beyond a lease are charged before another account gets a lease.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING

from gateway.policy.debts import Debts
from gateway.policy.dimensions import Unit
from gateway.policy.gcra import Meter
from gateway.policy.keys import FORGOTTEN_AT_ONCE, LIMIT_SIZE, MOST_RESTING, Key
from gateway.policy.limits import LEASE_SECONDS, Grant, Limit, LimitSpec, Member, grant_all
from gateway.wire.account import Burst
from gateway.wire.counters import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator

    from gateway.policy.supply import Metered
    from gateway.wire.account import Account

    Identity = tuple[Hashable, Unit, bool]

STEP = 0.01
"""Seconds between two rounds at least: timers are late by 1 ms or 2, and a round has its cost."""

AT_ONCE = 100
"""Accounts and limits to serve in one round: 20 µs for each, so a turn of the data plane."""

OBSERVED_AT_ONCE = 500
"""Accounts, or limits, under shadow rules to look at in one go: half a turn."""

MOST_AHEAD = 10.0
"""Seconds of a limit's rate that all its accounts together may be sent at once before any of it is
charged; see `burst`. It is debt then, and clients give up after 30 s."""

PAUSE = 0.001
"""Seconds after a round that did not come to an end: others have their turn meanwhile."""


def local_meter(spec: LimitSpec) -> Metered:
    """Return a plain GCRA meter, for a limit that this process does not share with others."""
    return Meter(spec.rate, spec.metered_burst)


class Limiter:
    """The traffic limits of all producers and consumers of a process. A grant lets a producer send
    messages, or a consumer request messages.

    `on_forget`: called with each limit that is forgotten. `make_meter`: returns the meter of a new
    limit. `most_resting`: the most bytes of memory for limits that have no accounts.
    """

    def __init__(
        self,
        on_forget: Callable[[Limit], None] | None = None,
        make_meter: Callable[[LimitSpec], Metered] = local_meter,
        most_resting: int = MOST_RESTING,
    ) -> None:
        self._most_resting = most_resting
        self._resting_size = 0  # bytes
        self._on_forget = on_forget
        self._make_meter = make_meter
        self._limits: dict[Identity, Limit] = {}
        self._debts = Debts()
        self._members: dict[Account, Member] = {}
        self._last_leased: Member | None = None  # the last that got a lease without waiting
        self._shadowed: dict[Member, None] = {}
        self._unobserved: list[Member] = []  # members still to be observed this time
        self._uncharged: dict[Limit, None] = {}  # their shadow limits, which are charged after them
        # When to serve each limit that has waiting members, or that granted some a lease by turn.
        self._due: list[tuple[float, int, Limit]] = []
        self._tickets = count()
        self._freed: dict[Account, None] = {}  # waited, and are under no limit any more
        self._resting: list[tuple[float, int, Identity]] = []  # when each may be forgotten
        self._last_round = float("-inf")

    def __len__(self) -> int:
        return len(self._limits)

    def limits(self) -> Iterator[Limit]:
        """Yield the limits that exist when the iteration begins. Accounts may be admitted and
        released during the iteration."""
        yield from tuple(self._limits.values())

    # -- accounts ----------------------------------------------------------------------------

    def admit(
        self,
        account: Account,
        specs: Collection[LimitSpec],
        now: float,
        client: Hashable = None,
    ) -> None:
        """Put an account under these limits, in place of the limits that it was under, as when
        rules are reloaded.

        Limits with the same key, unit and mode are one limit, even if their rates and bursts
        differ.

        `client`: the account's owner. If this client is in debt, its new accounts continue with the
        debt, so they are not served before the accounts of other clients.
        """
        self._forget(now)
        limits = dict.fromkeys(self._limit(spec, now) for spec in specs)
        for limit in limits:
            limit.accounts += 1
        before = self._members.get(account)
        # A grant to this account may still be on its way, and is void then.
        busy = account.queued > 0 or account in self._freed
        busy = busy or (before is not None and self._is_busy(before))
        self.release(account, now)
        if not limits:
            self._free(account, busy=busy)
            return
        member = self._enrol(account, tuple(limits), client)
        if before is not None:
            kept = {limit: tag for limit, tag in before.tags.items() if limit in member.tags}
            member.tags.update(kept)
        if not member.limits:
            self._free(account, busy=busy)
        elif busy:
            self._wait_anew(member, member.limits[0], now)

    def release(self, account: Account, now: float) -> None:
        """Remove an account from its limits, and give the unused units of its lease back to
        them."""
        self._freed.pop(account, None)
        member = self._members.pop(account, None)
        if member is None:
            return
        if member.waits_at is not None:
            member.waits_at.dequeue(member, now)
        if member.granted_by is not None:
            del member.granted_by.granted[member]
        if self._last_leased is member:
            self._last_leased = None
        self._shadowed.pop(member, None)
        member.return_lease(now)
        for limit in member.shadows:
            limit.charge_shadow(now)
        for limit in (*member.limits, *member.shadows):
            limit.accounts -= 1
            self._rest(limit, now)

    def wants(self, account: Account, now: float) -> bool:
        """Return whether the account's frame at which the scanner halted may pass now. If not, the
        account waits, and a later round grants it units."""
        member = self._members.get(account)
        if member is None or not account.is_short or self._is_busy(member):
            return not account.is_short
        if self._last_leased is not None and self._last_leased is not member:
            self._last_leased.settle(now)
        member.settle(now)
        for limit in member.limits:
            self._reclaim(limit, now)
        blocking = self._crowded_limit(member) or member.blocking_limit(now)
        if blocking is not None:
            self._wait_anew(member, blocking, now)
            return False
        for limit in member.limits:
            limit.serve_at_once(member, now)
        granted = member.lease(now)
        self._last_leased = member
        account.grant(granted.messages, granted.bytes)
        return not account.is_short

    def is_in_debt(self, account: Account, now: float) -> bool:
        """Return whether one of the account's limits, or the account's own share of a limit, is in
        debt by more than `LARGE_DEBT` seconds."""
        member = self._members.get(account)
        return member is not None and any(limit.is_in_debt(member, now) for limit in member.limits)

    def due_in(self, account: Account, now: float) -> float:
        """Return the seconds until the account's limits will have units for it, if no other account
        takes them; 0 if they have some now."""
        member = self._members.get(account)
        if member is None or not account.is_short:
            return 0.0
        member.settle(now)
        return max((limit.due_in(now) for limit in member.limits), default=0.0)

    def burst(self, account: Account) -> Burst:
        """Return the most messages and bytes that may arrive at once while the account's limits are
        unused: the burst of the strictest limit, but at most the account's part of what
        all accounts of the limit may have at once (`MOST_AHEAD`), of which they have equal
        parts."""
        member = self._members.get(account)
        least = {Unit.MESSAGES: ENDLESS, Unit.BYTES: ENDLESS}
        for limit in () if member is None else member.limits:
            spec = limit.spec
            part = spec.rate * MOST_AHEAD / limit.accounts
            least[spec.unit] = min(least[spec.unit], int(min(spec.metered_burst, part)))
        return Burst(least[Unit.MESSAGES], least[Unit.BYTES])

    def is_spent(self, spec: LimitSpec, now: float) -> bool:
        """Return whether a new account would have to wait at this limit, because other accounts
        wait there or no unit is left."""
        limit = self._limits.get(spec.identity)
        return limit is not None and (limit.waiting > 0 or limit.meter.is_spent(now))

    def supplied(self, identities: Iterable[Hashable] | None, now: float) -> None:
        """Schedule limits anew, because their shared meters got a response from the store.
        `identities`: the identities of these limits; None: all limits."""
        for identity in tuple(self._limits) if identities is None else identities:
            limit = self._limits.get(identity)  # type: ignore[call-overload]
            if limit is not None:
                self._schedule(limit, now)

    # -- rounds ------------------------------------------------------------------------------

    def hold_round(self, now: float) -> Iterator[Grant]:
        """Serve one round of waiting accounts: yield a `Grant` for each account that gets units.

        The caller must apply each grant before it asks for the next one, because what passes by one
        grant is charged before the next grant is computed. Between two grants, accounts may be
        admitted, begin to wait, and be released.
        """
        self._last_round = now
        for account in tuple(self._freed):
            if account in self._freed:
                del self._freed[account]
                yield grant_all(account)
        left = AT_ONCE
        while left > 0 and self._due and self._due[0][0] <= now:
            when, _, limit = heappop(self._due)
            if when != limit.due:
                continue  # a stale entry: the service was moved to an earlier time
            limit.due = float("-inf")  # or members that wait again would schedule it twice
            left -= 1
            try:
                self._review_grants(limit, now)
                self._reclaim(limit, now)
                for grant in self._serve(limit, left, now):
                    left -= 1
                    yield grant
            finally:
                limit.due = float("inf")
                self._schedule(limit, now)

    def next_time(self, now: float) -> float | None:
        """Return the time of the next round; None while no account waits."""
        if self._freed:
            return now
        first = self._first_due()
        if first is None:
            return None
        # If some were due by the last round already, that round was cut short.
        rest = PAUSE if first <= self._last_round else STEP
        return max(first, self._last_round + rest, now)

    @property
    def has_shadows(self) -> bool:
        """Return whether any account is under a shadow limit, so that `observe` has to be
        called."""
        return bool(self._shadowed)

    def observe(self, now: float) -> None:
        """Charge all shadow limits for what has passed since the last call. Call this about every
        second, and before you read their figures."""
        self._unobserved, self._uncharged = list(self._shadowed), {}
        while self.observe_some(now):
            pass

    def observe_some(self, now: float) -> bool:
        """Do a part of the work of `observe`; return whether some of it is left. A limit is charged
        once all its accounts have been read."""
        if not self._unobserved and not self._uncharged:
            self._unobserved = list(self._shadowed)
        if self._unobserved:
            for member in self._unobserved[-OBSERVED_AT_ONCE:]:
                if member in self._shadowed:
                    member.settle(now)
                    self._uncharged.update(dict.fromkeys(member.shadows))
            del self._unobserved[-OBSERVED_AT_ONCE:]
        else:
            for limit in tuple(islice(self._uncharged, OBSERVED_AT_ONCE)):
                del self._uncharged[limit]
                limit.charge_shadow(now)
        return bool(self._unobserved or self._uncharged)

    def _review_grants(self, limit: Limit, now: float) -> None:
        """Enqueue members again that got a lease in the last round and are held by now: they have
        more to send."""
        granted, limit.granted = limit.granted, {}
        for member in granted:
            member.granted_by = None
            member.settle(now)
            if member.is_mid_frame:
                self._review_later(member, limit)
            elif member.account.is_short:
                short = (own for own in member.limits if not member.has_units(own.spec.unit))
                at = next(short)
                self._wait(member, at, now)
                at.backdate(member, limit.served_at)

    @staticmethod
    def _review_later(member: Member, limit: Limit) -> None:
        """Have the limit's next service find out whether the member's lease sufficed."""
        limit.granted[member] = None
        member.granted_by = limit

    def _reclaim(self, limit: Limit, now: float) -> None:
        """Take back leases that were not used for `LEASE_SECONDS`, for members that wait."""
        if now < limit.checked_at + LEASE_SECONDS:
            return
        limit.checked_at = now
        for member in tuple(limit.leased):
            member.settle(now)
            if now >= member.used_at + LEASE_SECONDS and not self._is_busy(member):
                member.give_up_lease(now)

    def _serve(self, limit: Limit, most: int, now: float) -> Iterator[Grant]:
        """Yield grants by turn while the limit has units. A member that needs units of another
        limit too may have to wait there."""
        if self._last_leased is not None:
            self._last_leased.settle(now)
        turns = limit.round(now)
        unpaid = 0
        try:
            for member in turns:
                limit.dequeue(member, now)
                blocking = member.blocking_limit(now)
                if blocking is not None:
                    self._wait_anew(member, blocking, now)
                    continue
                self._review_later(member, limit)
                yield member.lease(now)
                unpaid += self._charge_granted(member, limit, now)
                most -= 1
                if most <= 0 or unpaid > limit.meter.available(now):
                    break
        finally:
            turns.close()

    def _charge_granted(self, member: Member, limit: Limit, now: float) -> int:
        """Charge what a member let pass by its grant; return the units left to be charged later.

        Under a limit that processes share these are all units beyond the lease, until the member is
        reviewed: a process that asked at once for its debt would come before the others.
        """
        if self._members.get(member.account) is not member:
            return 0
        if limit.spec.on_loss is not None:
            return member.unpaid(limit.spec.unit)
        member.settle(now)
        return 0

    def _schedule(self, limit: Limit, now: float) -> None:
        """Have a limit served when it has units for waiting members, can take back a lease, or has
        grants to review; never later than scheduled before."""
        when = limit.next_time(now) if limit.needs_service else limit.due
        if when < limit.due:
            limit.due = when
            heappush(self._due, (when, next(self._tickets), limit))

    def _first_due(self) -> float | None:
        """Return when the first limit is due. Drop stale entries, and those of limits that need no
        service any more."""
        while self._due:
            when, _, limit = self._due[0]
            if when == limit.due and limit.needs_service:
                return when
            heappop(self._due)
            if when == limit.due:
                limit.due = float("inf")
        return None

    # -- waiting -----------------------------------------------------------------------------

    def _is_busy(self, member: Member) -> bool:
        """Return whether frames of this member may be queued, which others must not overtake."""
        freed = member.account in self._freed
        return freed or member.waits_at is not None or member.granted_by is not None

    @staticmethod
    def _crowded_limit(member: Member) -> Limit | None:
        """Return a limit where others wait already, or where others may wait again while this
        member has had more than they."""
        for limit in member.limits:
            if limit.waiting or (
                limit.granted and member.tags[limit] > limit.clock + LEASE_SECONDS
            ):
                return limit
        return None

    def _wait_anew(self, member: Member, limit: Limit, now: float) -> None:
        limit.refresh_tag(member, now)
        self._wait(member, limit, now)

    def _wait(self, member: Member, limit: Limit, now: float) -> None:
        limit.enqueue(member, now)
        self._schedule(limit, now)

    # -- membership --------------------------------------------------------------------------

    def _enrol(self, account: Account, limits: tuple[Limit, ...], client: Hashable) -> Member:
        enforced = tuple(limit for limit in limits if not limit.spec.shadow)
        shadows = tuple(limit for limit in limits if limit.spec.shadow)
        member = Member(account, enforced, shadows, client)
        for limit in enforced:
            limit.enrol(member)
        self._members[account] = member
        if member.shadows:
            self._shadowed[member] = None
        if enforced:
            account.hold()
        return member

    def _free(self, account: Account, *, busy: bool) -> None:
        """Lift all limits from an account. If frames of it are queued the next round does so: none
        may overtake them."""
        if busy:
            self._freed[account] = None
        else:
            granted = grant_all(account)
            account.grant(granted.messages, granted.bytes)

    def _limit(self, spec: LimitSpec, now: float) -> Limit:
        """Return the limit of this identity, with these figures."""
        limit = self._limits.get(spec.identity)
        if limit is None:
            limit = Limit(spec, self._make_meter(spec), self._debts, now)
            self._limits[spec.identity] = limit
        if spec != limit.spec:
            if spec.on_loss != limit.spec.on_loss:
                limit.meter = self._make_meter(spec)
            limit.change(spec, now)
            self._schedule(limit, now)
        return limit

    def _rest(self, limit: Limit, now: float) -> None:
        """Keep a limit without accounts until its meter is full, so that opening a producer again
        gives no new burst."""
        if not limit.accounts and not limit.is_resting:
            limit.is_resting = True
            self._resting_size += _size(limit)
            entry = (limit.meter.full_at(now), id(limit), limit.spec.identity)
            heappush(self._resting, entry)

    def _forget(self, now: float) -> None:
        """Drop some limits without accounts whose meters are full, or that are too many."""
        for _ in range(FORGOTTEN_AT_ONCE):
            if not self._resting or (
                self._resting[0][0] > now and self._resting_size <= self._most_resting
            ):
                return
            when, _, identity = heappop(self._resting)
            limit = self._limits[identity]
            limit.is_resting = False
            self._resting_size -= _size(limit)
            if limit.accounts:
                continue
            if limit.meter.full_at(now) <= max(now, when):
                del self._limits[identity]
                self._debts.forget(limit)
                if self._on_forget is not None:
                    self._on_forget(limit)
            else:
                self._rest(limit, now)


def _size(limit: Limit) -> int:
    """Return the bytes that a limit takes in memory."""
    key = limit.spec.key
    return key.size if isinstance(key, Key) else LIMIT_SIZE
