"""One limit, and the members that share it: a meter, who has a lease, and who waits for one.

A *member* is an account under limits. It leases units before it uses them, and pays for them then:
`paid` is how far the account's counters may go. A frame that passes beyond that is charged as soon
as it is seen.

Members that wait are served by turn. Each has a *tag*: the time, at the limit's rate, that its
messages or bytes have cost so far. The members with the least tags are served first, so large
messages do not starve small ones, nor the reverse. A new member starts from the limit's *clock*, so
nobody saves up turns (start-time fair queueing, in rounds). The clock follows the average of the
members' tags and does not fall behind the least tag of the last round; while nobody waits it goes
on with time.

A frame passes whole, so a tag may be far ahead of the clock. Its member then waits until the others
have had as much, if they want something; with nobody else it goes on as soon as there is room. New
accounts of the same client start from where the client is (`debts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from gateway.policy.debts import NONE, Debt
from gateway.policy.gcra import ONE
from gateway.wire.account import ENDLESS, Account, Action

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Generator, Hashable

    from gateway.policy.debts import Debts
    from gateway.policy.supply import Metered, OnLoss

LEASE_SECONDS = 0.05
"""Seconds of the rate that are out on lease, shared by all who are active. Others miss what is not
used for as long; with shorter ones a busy account would ask more than twenty times a second."""

LARGEST_STEP = LEASE_SECONDS / 2
"""Seconds between two times that a limit is served, where its rate is low: a lease has to last, and
timers are late."""

LEAST_STEP = 0.01
"""The same where it is high."""

MUCH = 1.0
"""Seconds of the rate that are much to owe. A frame that costs no more moves the clock, so that who
opens a new account for each frame does not overtake the others for ever. What costs more is
remembered of its client."""

MOST_AHEAD = 300.0
"""Seconds that a tag may be ahead of the clock. Who passes more at once than the others have in
five minutes is not kept waiting for longer: a consumer has not chosen how large a batch is."""

LEAST_BURST = 0.1
"""Seconds of the rate that are saved up at least: a late timer must not lose what was earned."""


FEW_STALE = 100
"""Places in a queue whose members wait no more, and that nobody minds: some hundred bytes each."""

MOST_TURNS = 1000
"""Places that are looked at to know among how many a round is shared. More get no more than a unit
each, in several rounds."""


class Unit(IntEnum):
    MESSAGES = 0
    BYTES = 1


@dataclass(frozen=True, slots=True)
class Applied:
    """A limit as a rule sets it. `key`: the rule's id and what it is per. `burst` in units.

    `shadow`: it counts what it would have held, and holds nothing. `on_loss`: it is shared with
    other processes, and so it goes on while they cannot be asked.
    """

    key: Hashable
    unit: Unit
    rate: float
    burst: float
    shadow: bool = False
    on_loss: OnLoss | None = None

    @property
    def identity(self) -> tuple[Hashable, Unit, bool]:
        """What stays when the rule gets other figures."""
        return self.key, self.unit, self.shadow

    @property
    def step(self) -> float:
        """Seconds between two times that it is served: about a hundred messages, or 100 KB. So
        neither has one much to do at a time, nor do many of them have something all the time."""
        grain = 100 if self.unit is Unit.MESSAGES else 100_000
        return min(LARGEST_STEP, max(LEAST_STEP, grain / self.rate))

    @property
    def saved(self) -> float:
        """The burst that is metered: a whole message, and what a late timer must not lose."""
        return max(self.burst, 1 + self.rate * LEAST_BURST)


_tickets = count()


class Limit:
    """`accounts`: how many are under it. `leased`: who may have units left.

    `waiting`: how many wait now. `turns`: how many of them are still to be served in this round.
    `waits`, `waited`: how often somebody did wait, and seconds in all.
    `held`: units that a shadow limit would have held; its `waited` are seconds in which it would.
    `seen`: until when the clock was moved on with time. `debtors`: see `Debts`, which writes it.
    """

    __slots__ = (
        "_queue",
        "accounts",
        "applied",
        "clock",
        "debtors",
        "debts",
        "due",
        "forgettable",
        "granted",
        "held",
        "leased",
        "looked",
        "meter",
        "seen",
        "served",
        "turns",
        "unmetered",
        "waited",
        "waiting",
        "waits",
    )

    def __init__(self, applied: Applied, meter: Metered, debts: Debts, now: float) -> None:
        self.applied = applied
        self.debts = debts
        self.debtors: OrderedDict[Hashable, Debt] | None = None
        self.meter = meter
        self.accounts = self.waiting = self.turns = self.waits = self.unmetered = 0
        self.held = self.waited = self.clock = 0.0
        self.seen = now
        self.looked = now  # at unused leases, or at what passed under a shadow
        self.forgettable = False
        self.due = float("inf")  # when it is served next
        self.served = float("-inf")
        self.granted: dict[Member, None] = {}
        self.leased: set[Member] = set()
        self._queue: list[tuple[float, int, Member]] = []

    def change(self, applied: Applied, now: float) -> None:
        """Other figures; what was earned or is owed stays."""
        self.applied = applied
        self.meter.change(applied.rate, applied.saved, now)

    # -- leases ------------------------------------------------------------------------------

    def has_room(self, now: float) -> bool:
        """One whole unit may be leased."""
        return self.meter.available(now) >= ONE

    def lease(self, member: Member, now: float) -> int:
        """How many units the one whose turn it is may have. Only where there is room."""
        among = self.turns or self.waiting + 1
        active = among + len(self.leased) - (member in self.leased)
        room = self.meter.available(now) / among
        return max(1, int(min(room, self.applied.rate * LEASE_SECONDS / active)))

    def charge(self, member: Member, used: int, unpaid: int, now: float) -> None:
        """Charge what a member used, in turns, and to the meter what it had no lease for."""
        clock, cost = self.clock, used / self.applied.rate
        tag = member.tags[self]
        if tag < clock - MUCH:
            tag = clock - MUCH  # it was idle, and has saved up nothing
        tag += cost
        if tag > clock + MOST_AHEAD:
            tag = clock + MOST_AHEAD
        member.tags[self] = tag
        self.clock += (cost if cost < MUCH else MUCH) / (self.waiting + len(self.leased) or 1)
        if unpaid:
            forgiven = self.meter.forgiven
            self.meter.take(unpaid, now)
            if tag > self.clock + MUCH:
                self._remember(member, cost if self.meter.forgiven > forgiven else 0.0)

    def _remember(self, member: Member, forgiven: float) -> None:
        """A client owes as much as the one of its accounts that owes most, and the sum of the
        frames that the meter forgave in part."""
        if member.client is not None:
            before = self.owed(member.client)
            every = min(max(before.all, self.clock) + forgiven, self.clock + MOST_AHEAD)
            new = max(before.new, member.tags[self], every)
            self.debts.record(self, member.client, Debt(new, every))

    def owed(self, client: Hashable) -> Debt:
        """What a client owes here."""
        return self.debtors.get(client, NONE) if self.debtors else NONE

    def is_in_debt(self, member: Member, now: float) -> bool:
        """The limit owes much, or this member does."""
        owed = -self.meter.available(now) / self.applied.rate
        return max(owed, member.tags[self] - self.clock) > MUCH

    # -- turns -------------------------------------------------------------------------------

    def enrol(self, member: Member) -> None:
        """A member starts where its client is."""
        member.tags[self] = max(self.clock, self.owed(member.client).new)

    def pass_on(self, member: Member, now: float) -> None:
        """It is served while nobody waits: whoever comes later starts where it is, but for those
        who owe much."""
        tag = self.welcome(member, now)
        if tag <= self.clock + MUCH:
            self.clock = tag

    def welcome(self, member: Member, now: float) -> float:
        """It comes anew: what it did not use before is no right to more now. Answer its tag."""
        if now > self.seen:
            if not (self.waiting or self.granted):
                self.clock += now - self.seen
            self.seen = now
        tag = member.tags[self]
        if tag < self.clock:
            tag = member.tags[self] = self.clock
        if self.debtors:
            tag = member.tags[self] = max(tag, self.owed(member.client).all)
        return tag

    def put(self, member: Member, now: float) -> None:
        """Have a member wait here."""
        member.waits_at, member.since, member.ticket = self, now, next(_tickets)
        heappush(self._queue, (member.tags[self], member.ticket, member))
        self.leased.discard(member)
        self.waiting += 1
        self.waits += 1

    def take_out(self, member: Member, now: float) -> None:
        """It waits here no more; its place in the queue is skipped when it comes."""
        member.waits_at, member.ticket = None, -1
        self.waiting -= 1
        self.waited += now - member.since
        if not self.waiting:
            self._queue.clear()
        elif len(self._queue) - self.waiting > max(FEW_STALE, self.waiting):
            self._queue[:] = [it for it in self._queue if it[2].ticket == it[1]]
            heapify(self._queue)

    def first(self) -> Member | None:
        """Whose turn it is."""
        while self._queue and self._queue[0][2].ticket != self._queue[0][1]:
            heappop(self._queue)
        return self._queue[0][2] if self._queue else None

    def round(self, now: float) -> Generator[Member]:
        """Those whose turn it is, while there is room: who is ahead by a lease is left out.

        Each is to be taken out before the next one is asked for.
        """
        self.served = self.seen = now
        first = self.first()
        if first is None:
            return
        least = first.tags[self]
        self.clock = min(self.clock, least + MUCH)
        self.turns = self._ahead(least + LEASE_SECONDS)
        try:
            while self.turns and self.has_room(now) and (member := self.first()) is not None:
                if not (self.debtors and self._puts_back(member)):
                    if self.clock < least:
                        self.clock = least
                    yield member
                self.turns -= 1
        finally:
            self.turns = 0

    def _puts_back(self, member: Member) -> bool:
        """Whether the first one has to wait for what another account of its client did."""
        owed = self.owed(member.client).all
        if owed <= member.tags[self]:
            return False
        member.tags[self] = owed
        heapreplace(self._queue, (owed, member.ticket, member))
        return True

    def _ahead(self, until: float) -> int:
        """How many wait whose tags are not beyond this; of a long queue, of the first `MOST_TURNS`
        that are seen.

        A queue is a heap: behind an entry are none with lesser tags, and most are never looked at.
        """
        if len(self._queue) <= MOST_TURNS:
            return sum(it[0] <= until for it in self._queue if it[2].ticket == it[1])
        found, places = 0, [0]
        for _ in range(MOST_TURNS):
            if not places:
                break
            at = places.pop()
            if at < len(self._queue) and self._queue[at][0] <= until:
                _, ticket, member = self._queue[at]
                found += member.ticket == ticket
                places += (2 * at + 2, 2 * at + 1)
        return found

    @property
    def is_wanted(self) -> bool:
        """Somebody waits, or it is to be seen whether a lease sufficed."""
        return bool(self.waiting or self.granted)

    def next_time(self, now: float) -> float:
        """When to serve it next."""
        times = [self.meter.ready_at(1, now)] if self.waiting else [now]
        if self.leased:
            times.append(self.looked + LEASE_SECONDS)
        # Leases are whole units, and shared among many: some of the room may be left.
        step = LEAST_STEP if self.has_room(now) else self.applied.step
        return max(min(times), self.served + step)

    def refuses(self, member: Member, now: float) -> bool:
        """There is no room, or somebody has a better right to it."""
        first = self.first() if self.waiting else None
        overtaken = first is not None and first.tags[self] < member.tags[self]
        return overtaken or not self.has_room(now)

    # -- shadow ------------------------------------------------------------------------------

    def shade(self, now: float) -> None:
        """Charge what passed since the last look, as if it had come evenly, and count what is
        beyond the limit. Nothing is owed for that: it would not have passed."""
        earned = self.meter.available(self.looked) + (now - self.looked) * self.applied.rate
        beyond = self.unmetered - earned
        if beyond > 0:
            self.held += beyond
            self.waited += now - self.looked
        self.meter.take(min(self.unmetered, earned), self.looked)
        self.unmetered = 0
        self.looked = now


class Grant(NamedTuple):
    """An account's allowance rises by so much; 0: it stays as it is."""

    account: Account
    messages: int
    bytes: int


def _raise(account: Account, messages: int, size: int) -> Grant:
    """What raises both ceilings to these counts."""
    messages -= account.messages_ceiling
    return Grant(account, max(0, messages), max(0, size - account.bytes_ceiling))


def endless(account: Account) -> Grant:
    """What puts both ceilings out of reach."""
    return _raise(account, ENDLESS, ENDLESS)


class Member:
    """`limits` hold it, `shadows` only watch. `tags`: see `limits`. `since`: when its wait began.
    `client`: whose account it is; None: nobody knows.

    `used_at`: when it was last seen to have used something, or got a lease. `granted_by`: the limit
    that gave it one by turn, until that one is served again.
    """

    __slots__ = (
        "_paid",
        "_seen",
        "account",
        "client",
        "granted_by",
        "limits",
        "shadows",
        "since",
        "tags",
        "ticket",
        "used_at",
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
        self.since = self.used_at = 0.0
        self._seen = [account.messages, account.bytes]
        self._paid = [account.messages, account.bytes]

    def settle(self, now: float) -> None:
        """See what was used, and charge what was not paid for."""
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
            if limit.applied.unit == unit:
                limit.charge(self, used, unpaid, now)
        for limit in self.shadows:
            if limit.applied.unit == unit:
                limit.unmetered += used

    def beyond(self, unit: Unit) -> int:
        """Units that passed and are neither paid for nor seen."""
        passed = (self.account.messages, self.account.bytes)[unit]
        return max(0, passed - self._paid[unit])

    def has_left(self, unit: Unit) -> bool:
        """Of what it paid for, as far as that was seen."""
        return self._paid[unit] > self._seen[unit]

    @property
    def is_due(self) -> bool:
        """It is held though it paid: its grant waits until a frame that is cut is all here."""
        return self.account.held and all(self.has_left(it.applied.unit) for it in self.limits)

    def refused_by(self, now: float) -> Limit | None:
        """A limit of which it needs a lease and cannot have one now."""
        for limit in self.limits:
            if not self.has_left(limit.applied.unit) and limit.refuses(self, now):
                return limit
        return None

    def lend(self, now: float) -> Grant:
        """Lease what it has not, the least that any limit gives."""
        sizes = [0, 0]
        for limit in self.limits:
            unit = limit.applied.unit
            if not self.has_left(unit):
                size = limit.lease(self, now)
                sizes[unit] = min(size, sizes[unit] or size)
        for limit in self.limits:
            limit.meter.take(sizes[limit.applied.unit], now)
            limit.leased.add(self)
        self._paid[0] += sizes[0]
        self._paid[1] += sizes[1]
        self.used_at = now
        return self._grant()

    def _grant(self) -> Grant:
        """To where it paid for, or out of reach where nothing limits."""
        reach = [ENDLESS, ENDLESS]
        for limit in self.limits:
            reach[limit.applied.unit] = self._paid[limit.applied.unit]
        return _raise(self.account, *reach)

    def rest(self, now: float) -> None:
        """It has not used its leases for a while. A consumer keeps them: the messages that it has
        asked for may come at any time, and they are paid."""
        if self.account.action is not Action.CONSUME:
            self.give_back(now)
        for limit in self.limits:
            limit.leased.discard(self)

    def give_back(self, now: float) -> None:
        """Return what is left of its leases. From here on it is held."""
        self.settle(now)
        for limit in self.limits:
            unit = limit.applied.unit
            limit.meter.give_back(self._paid[unit] - self._seen[unit], now)
            limit.leased.discard(self)
        self._paid[:] = self._seen
        if self.limits:
            self.account.hold()
