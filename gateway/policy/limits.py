"""One rate limit and the accounts under it: a meter, leases of its units, and a fair queue.

Meter. A GCRA meter (`gcra`) says how many units, messages or bytes, may be handed out now. A limit
that processes share has a `SharedMeter` instead (`supply`).

Leases. An account under limits is a `Member`. It takes units from the meter in advance. These units
are a *lease*: at most the units of `LEASE_SECONDS` at the limit's rate, divided by the number of
active members. The lease raises the ceilings of the account's counters, so frames below the
ceilings pass without a call of this code. `Member._paid` is the count up to which the meter was
charged. A frame passes whole, so it may exceed the lease. The excess is charged as soon as it is
seen, and the meter may then be in debt. If the size of the frame that waits is known
(`Account.needs`), the lease covers all of it, so the meter is in debt before the frame passes, and
nobody else gets a lease until the debt is earned.

Fair queue (start-time fair queueing, in rounds). Members without units wait in a queue ordered by
*tag*: a virtual time, to which each unit that the member uses adds 1/rate seconds. A round serves
the members with the smallest tags and divides the available units equally among them. So members
with large messages do not starve members with small ones, nor the reverse.

Clock. The limit's *clock* is the virtual time at which the tags of new and returning members start,
so that no member saves up turns by being idle. When a member is charged, the clock advances by the
cost divided by the number of active members, so it follows the average tag. The clock is never
behind the least tag of the last round. While no member waits, it advances with real time.

Debt. A large frame may put a member's tag far ahead of the clock. If other members want units, this
member waits until they have used as much. If none do, it continues as soon as the meter has units.
New accounts of the same client start from the client's debt (`debts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.dimensions import Unit
from gateway.policy.gcra import WHOLE_UNIT
from gateway.policy.keys import Key
from gateway.wire.account import Account, Action
from gateway.wire.counters import ENDLESS

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Generator, Hashable

    from gateway.policy.debts import Debts
    from gateway.policy.supply import Metered, OnLoss

LEASE_SECONDS = 0.05
"""Seconds of the rate on lease at a time, shared by all active members. Units that one member
leaves unused are missing to the others for as long; with shorter leases a busy account would ask
more than twenty times a second."""

LARGEST_STEP, LEAST_STEP = LEASE_SECONDS / 2, 0.01
"""Seconds between two services of a limit with a low, and with a high rate. A lease has to last
longer, and timers are late."""

LARGE_DEBT = 1.0
"""Seconds of the rate above which a debt is large. A frame that costs less advances the clock by
its full cost, so that a client which opens a new account for each frame does not overtake the
others for ever. A larger debt is remembered for the client."""

MOST_AHEAD = 300.0
"""Seconds that a tag may be ahead of the clock. A member that passed more at once than the others
have in five minutes waits no longer than that: a consumer does not choose the size of batches."""

LEAST_BURST = 0.1
"""Seconds of the rate that can always be saved up: a late timer must not lose units."""

MOST_STALE = 100
"""Stale queue entries, of members that wait no more, to tolerate: some hundred bytes each."""

MOST_TURNS = 1000
"""Queue entries to look at when counting the members that share a round. Where more wait, each gets
one unit at most, in several rounds."""


@dataclass(frozen=True, slots=True)
class LimitSpec:
    """A limit as a rule sets it. `key`: the rule's id and the values of `per`. `rate`: units per
    second. `burst`: units.

    `shadow`: the limit makes no account wait, and only counts the units that it would have held.
    `on_loss`: how the limit works while the store that processes share is unreachable; None: the
    limit is not shared.
    """

    key: Hashable
    unit: Unit
    rate: float
    burst: float
    shadow: bool = False
    on_loss: OnLoss | None = None

    @property
    def identity(self) -> tuple[Hashable, Unit, bool]:
        """Return the limit's identity, which a change of the rule's rate or burst does not change:
        key, unit, and whether the limit is in shadow mode."""
        return self.key, self.unit, self.shadow

    @property
    def rule(self) -> str:
        """Return the id of the rule."""
        return self.key.rule if isinstance(self.key, Key) else str(self.key)

    @property
    def step(self) -> float:
        """Return the seconds from one service of the limit (a round of leases) to the next: the
        time in which the rate allows a hundred messages or 100 KB, but at least `LEAST_STEP` and at
        most `LARGEST_STEP`. Thus many limits do not keep the process busy."""
        grain = 100 if self.unit is Unit.MESSAGES else 100_000
        return min(LARGEST_STEP, max(LEAST_STEP, grain / self.rate))

    @property
    def metered_burst(self) -> float:
        """Return the burst of the limit's meter, in units. It is at least one unit more than the
        rate earns in `LEAST_BURST` seconds."""
        return max(self.burst, 1 + self.rate * LEAST_BURST)


_tickets = count()


class Limit:
    """A rate limit: its meter, its leases, and the queue of the members that wait.

    `accounts`: the number of accounts under the limit. `leased`: the members that may have units of
    a lease left. `waiting`: the number of members that wait now. `turns`: the number of members
    still to be served in this round. `waits`: the number of waits so far. `waited`: the seconds of
    all waits; of a shadow limit, the seconds in which it would have held units. `held`: the units
    that a shadow limit would have held. `advanced_at`: the time up to which the clock was advanced
    with real time. `checked_at`: the time of the last check for unused leases; of a shadow limit,
    of the last charge. `due`: the time of the next service. `granted`: the members to which the
    last service granted a lease. `debtors`: the debts under this limit, which `Debts` writes.
    """

    __slots__ = (
        "_queue",
        "accounts",
        "advanced_at",
        "checked_at",
        "clock",
        "debtors",
        "debts",
        "due",
        "granted",
        "held",
        "is_resting",
        "leased",
        "meter",
        "served_at",
        "spec",
        "turns",
        "unmetered",
        "waited",
        "waiting",
        "waits",
    )

    def __init__(self, spec: LimitSpec, meter: Metered, debts: Debts, now: float) -> None:
        self.spec = spec
        self.debts = debts
        self.debtors: OrderedDict[Hashable, float] | None = None
        self.meter = meter
        self.accounts = self.waiting = self.turns = self.waits = self.unmetered = 0
        self.held = self.waited = self.clock = 0.0
        self.advanced_at = self.checked_at = now
        self.is_resting = False
        self.due = float("inf")
        self.served_at = float("-inf")
        self.granted: dict[Member, None] = {}
        self.leased: set[Member] = set()
        self._queue: list[tuple[float, int, Member]] = []

    def change(self, spec: LimitSpec, now: float) -> None:
        """Change the rate and the burst to those of `spec`; saved units and debt are kept."""
        self.spec = spec
        self.meter.change(spec.rate, spec.metered_burst, now)

    # -- leases ------------------------------------------------------------------------------

    def has_units(self, now: float) -> bool:
        """Return whether at least one whole unit may be leased."""
        return self.meter.available(now) >= WHOLE_UNIT

    def due_in(self, now: float) -> float:
        """Return the seconds until the limit has a whole unit for each waiting member, and one more
        unit for another member."""
        wanted = WHOLE_UNIT * (self.waiting + 1)
        return max(0.0, (wanted - self.meter.available(now)) / self.spec.rate)

    def lease_size(self, member: Member, now: float) -> int:
        """Return how many units to lease to the member whose turn it is, at least one. The limit
        must have at least one unit."""
        among = self.turns or self.waiting + 1
        active = among + len(self.leased) - (member in self.leased)
        share = self.meter.available(now) / among
        return max(1, int(min(share, self.spec.rate * LEASE_SECONDS / active)))

    def charge(self, member: Member, used: int, unpaid: int, now: float) -> None:
        """Charge a member for the `used` units: advance the member's tag (virtual time) by the cost
        of all of them, and take from the meter only the `unpaid` ones, which the lease did not
        cover."""
        clock, cost = self.clock, used / self.spec.rate
        tag = member.tags[self]
        if tag < clock - LARGE_DEBT:
            tag = clock - LARGE_DEBT  # idle time saves up no turns
        tag += cost
        if tag > clock + MOST_AHEAD:
            tag = clock + MOST_AHEAD
        member.tags[self] = tag
        self.clock += (cost if cost < LARGE_DEBT else LARGE_DEBT) / (
            self.waiting + len(self.leased) or 1
        )
        if unpaid:
            self.meter.take(unpaid, now)
        if tag > self.clock + LARGE_DEBT and member.client is not None:
            self.debts.record(self, member.client, max(tag, self.debt_of(member.client)))

    def debt_of(self, client: Hashable) -> float:
        """Return the debt of a client under this limit: the tag of its account with the largest
        one, from which its new accounts continue; 0 without a debt."""
        return self.debtors.get(client, 0.0) if self.debtors else 0.0

    def is_in_debt(self, member: Member, now: float) -> bool:
        """Return whether the limit, or this member under it, is in debt by more than `LARGE_DEBT`
        seconds."""
        owed = -self.meter.available(now) / self.spec.rate
        return max(owed, member.tags[self] - self.clock) > LARGE_DEBT

    # -- turns -------------------------------------------------------------------------------

    def enrol(self, member: Member) -> None:
        """Set the tag of a new member (its virtual time in the fair queue) to the limit's clock, or
        to the debt of its client if the debt is later."""
        member.tags[self] = max(self.clock, self.debt_of(member.client))

    def serve_at_once(self, member: Member, now: float) -> None:
        """Advance the limit's clock to the tag (virtual time) of a member that is served without
        waiting, so that the tags of later members start there. If the member has a large debt, the
        clock is not advanced."""
        tag = self.refresh_tag(member, now)
        if tag <= self.clock + LARGE_DEBT:
            self.clock = tag

    def refresh_tag(self, member: Member, now: float) -> float:
        """Advance the tag (virtual time) of a returning member at least to the limit's clock, and
        return the tag: units that the member did not use earlier give it no right to more units
        now."""
        if now > self.advanced_at:
            if not (self.waiting or self.granted):
                self.clock += now - self.advanced_at
            self.advanced_at = now
        tag = member.tags[self]
        if tag < self.clock:
            tag = member.tags[self] = self.clock
        return tag

    def enqueue(self, member: Member, now: float) -> None:
        """Put a member into the queue of waiting members."""
        member.waits_at, member.waiting_since, member.ticket = self, now, next(_tickets)
        heappush(self._queue, (member.tags[self], member.ticket, member))
        self.leased.discard(member)
        self.waiting += 1
        self.waits += 1
        member.account.begin_wait(self.spec.rule, now)

    def backdate(self, member: Member, since: float) -> None:
        """Let a member's wait begin at `since`, the time at which the member was granted its last
        lease, because the frames that waited at that time used up this lease at once."""
        member.waiting_since = since
        member.account.begin_wait(self.spec.rule, since)

    def dequeue(self, member: Member, now: float) -> None:
        """End a member's wait. Its entry in the queue becomes stale, and is skipped later."""
        member.waits_at, member.ticket = None, -1
        self.waiting -= 1
        self.waited += now - member.waiting_since
        member.account.end_wait(now)
        if not self.waiting:
            self._queue.clear()
        elif len(self._queue) - self.waiting > max(MOST_STALE, self.waiting):
            self._queue[:] = [entry for entry in self._queue if entry[2].ticket == entry[1]]
            heapify(self._queue)

    def head(self) -> Member | None:
        """Return the waiting member with the least tag (virtual time); None if no member waits.
        Stale entries before it are dropped."""
        while self._queue and self._queue[0][2].ticket != self._queue[0][1]:
            heappop(self._queue)
        return self._queue[0][2] if self._queue else None

    def round(self, now: float) -> Generator[Member]:
        """Yield the members to serve in this round, least tag (virtual time) first, while units are
        available. Members with tags more than `LEASE_SECONDS` after the least tag are left out.

        The caller must dequeue each member before it requests the next one.
        """
        self.served_at = self.advanced_at = now
        head = self.head()
        if head is None:
            return
        least = head.tags[self]
        self.clock = min(self.clock, least + LARGE_DEBT)
        self.turns = self._count_tags(least + LEASE_SECONDS)
        try:
            while self.turns and self.has_units(now) and (member := self.head()) is not None:
                if self.clock < least:
                    self.clock = least
                yield member
                self.turns -= 1
        finally:
            self.turns = 0

    def _count_tags(self, until: float) -> int:
        """Return the number of waiting members with tags up to `until`; in a long queue, among the
        first `MOST_TURNS` entries seen.

        The queue is a heap: no entry behind another has a smaller tag, so most are never looked at.
        """
        if len(self._queue) <= MOST_TURNS:
            return sum(entry[0] <= until for entry in self._queue if entry[2].ticket == entry[1])
        number, places = 0, [0]
        for _ in range(MOST_TURNS):
            if not places:
                break
            at = places.pop()
            if at < len(self._queue) and self._queue[at][0] <= until:
                _, ticket, member = self._queue[at]
                number += member.ticket == ticket
                places += (2 * at + 2, 2 * at + 1)
        return number

    @property
    def needs_service(self) -> bool:
        """Return whether a member waits, or may wait again because the last round granted it a
        lease."""
        return bool(self.waiting or self.granted)

    def next_time(self, now: float) -> float:
        """Return the time of this limit's next service."""
        times = [self.meter.ready_at(1, now)] if self.waiting else [now]
        if self.leased:
            times.append(self.checked_at + LEASE_SECONDS)
        # Leases are whole units, divided among many members: some units may be left over.
        step = LEAST_STEP if self.has_units(now) else self.spec.step
        return max(min(times), self.served_at + step)

    def makes_wait(self, member: Member, now: float) -> bool:
        """Return whether a member has to wait at this limit, because no unit is available, or
        because a member that already waits has a lesser tag (virtual time)."""
        head = self.head() if self.waiting else None
        has_precedence = head is not None and head.tags[self] < member.tags[self]
        return has_precedence or not self.has_units(now)

    # -- shadow ------------------------------------------------------------------------------

    def charge_shadow(self, now: float) -> None:
        """Charge a shadow limit for the units that passed since the last charge, as if they had
        been spread evenly, and count the units beyond the limit as held. Those leave no debt,
        because an enforced limit would not have let them pass."""
        earned = self.meter.available(self.checked_at) + (now - self.checked_at) * self.spec.rate
        excess = self.unmetered - earned
        if excess > 0:
            self.held += excess
            self.waited += now - self.checked_at
        self.meter.take(min(self.unmetered, earned), self.checked_at)
        self.unmetered = 0
        self.checked_at = now


class Grant(NamedTuple):
    """The units by which each of an account's two ceilings rises; 0: the ceiling is not changed."""

    account: Account
    messages: int
    bytes: int


def _grant_up_to(account: Account, messages: int, size: int) -> Grant:
    """Return the grant that raises both ceilings to these counts."""
    messages -= account.messages_ceiling
    return Grant(account, max(0, messages), max(0, size - account.bytes_ceiling))


def grant_all(account: Account) -> Grant:
    """Return the grant for an account without limits: it raises the ceilings of messages and bytes
    out of reach."""
    return _grant_up_to(account, ENDLESS, ENDLESS)


class Member:
    """An account and its limits. `limits`: the limits that may hold it. `shadows`: the shadow
    limits, which only count. `client`: the account's owner; None if unknown. `tags`: the member's
    tag at each limit (see the module).

    `waits_at`, `ticket`: the limit in whose queue the member waits, and the number of its entry
    there. `waiting_since`: when this wait began. `used_at`: when the member was last seen to have
    used units, or was granted a lease. `granted_by`: the limit that granted it a lease in its last
    round, until that limit is served again. `_seen`: the counts that were last read, by unit.
    `_paid`: the counts up to which the meters were charged, by unit.
    """

    __slots__ = (
        "_paid",
        "_seen",
        "account",
        "client",
        "granted_by",
        "limits",
        "shadows",
        "tags",
        "ticket",
        "used_at",
        "waiting_since",
        "waits_at",
    )

    def __init__(
        self,
        account: Account,
        limits: tuple[Limit, ...],
        shadows: tuple[Limit, ...],
        client: Hashable = None,
    ) -> None:
        self.account = account
        self.client = client
        self.limits = limits
        self.shadows = shadows
        self.tags = dict.fromkeys(limits, 0.0)
        self.waits_at: Limit | None = None
        self.granted_by: Limit | None = None
        self.ticket = -1
        self.waiting_since = self.used_at = 0.0
        self._seen = [account.messages, account.bytes]
        self._paid = [account.messages, account.bytes]

    def settle(self, now: float) -> None:
        """Read the account's counters, and charge its limits for what passed since the last
        call."""
        account, seen = self.account, self._seen
        messages, size = account.messages - seen[0], account.bytes - seen[1]
        if messages or size:
            seen[0], seen[1] = account.messages, account.bytes
            self.used_at = now
            if messages:
                self._charge(Unit.MESSAGES, messages, now)
            if size:
                self._charge(Unit.BYTES, size, now)

    def _charge(self, unit: Unit, used: int, now: float) -> None:
        unpaid = max(0, self._seen[unit] - self._paid[unit])
        self._paid[unit] += unpaid
        for limit in self.limits:
            if limit.spec.unit == unit:
                limit.charge(self, used, unpaid, now)
        for limit in self.shadows:
            if limit.spec.unit == unit:
                limit.unmetered += used

    def unpaid(self, unit: Unit) -> int:
        """Return how many units have passed beyond the lease without being charged yet."""
        passed = (self.account.messages, self.account.bytes)[unit]
        return max(0, passed - self._paid[unit])

    def missing(self, unit: Unit) -> int:
        """Return how many units the lease lacked for the account's next frame at the last `settle`:
        one at least if none was left."""
        needs = max(1, self.account.needs) if unit is Unit.BYTES else 1
        return max(0, needs - (self._paid[unit] - self._seen[unit]))

    def has_units(self, unit: Unit) -> bool:
        """Return whether the lease covered the account's next frame at the last `settle`."""
        return not self.missing(unit)

    @property
    def is_mid_frame(self) -> bool:
        """Return whether the account waits although its lease has units left: only a part of a
        frame has arrived, and the grant takes effect when the rest arrives."""
        return self.account.is_short and all(
            self.has_units(limit.spec.unit) for limit in self.limits
        )

    def blocking_limit(self, now: float) -> Limit | None:
        """Return a limit from which this member needs a lease but cannot get one now; None if there
        is no such limit."""
        for limit in self.limits:
            if not self.has_units(limit.spec.unit) and limit.makes_wait(self, now):
                return limit
        return None

    def lease(self, now: float) -> Grant:
        """Lease messages, bytes, or both, where the lease has none left, and return the grant. The
        strictest limit determines how many."""
        sizes = [0, 0]
        for limit in self.limits:
            unit = limit.spec.unit
            if not self.has_units(unit):
                size = limit.lease_size(self, now)
                sizes[unit] = min(size, sizes[unit] or size)
        for unit in Unit:
            if sizes[unit]:
                sizes[unit] = max(sizes[unit], self.missing(unit))
        for limit in self.limits:
            limit.meter.take(sizes[limit.spec.unit], now)
            limit.leased.add(self)
        self._paid[0] += sizes[0]
        self._paid[1] += sizes[1]
        self.used_at = now
        return self._grant()

    def _grant(self) -> Grant:
        """Return the grant up to the paid counts; out of reach in a unit that no limit is of."""
        reach = [ENDLESS, ENDLESS]
        for limit in self.limits:
            reach[limit.spec.unit] = self._paid[limit.spec.unit]
        return _grant_up_to(self.account, *reach)

    def give_up_lease(self, now: float) -> None:
        """Give back the units of a lease that has not been used for a while. A consumer keeps its
        units, because the messages that it requested may come at any time, and must then be paid
        for."""
        if self.account.action is not Action.CONSUME:
            self.return_lease(now)
        for limit in self.limits:
            limit.leased.discard(self)

    def return_lease(self, now: float) -> None:
        """Give back the unused units of all leases, so that the account has no allowance any
        more."""
        self.settle(now)
        for limit in self.limits:
            unit = limit.spec.unit
            limit.meter.give_back(self._paid[unit] - self._seen[unit], now)
            limit.leased.discard(self)
        self._paid[:] = self._seen
        if self.limits:
            self.account.hold()
