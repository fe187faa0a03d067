"""Accounts: the counts of each open producer and consumer, and their totals per topic.

Each open producer or consumer has an `Account`, to which the scanner writes its counts. When the
account closes, its counts are added to those of its topic, so totals per topic never decrease.

A topic without open accounts is *idle*. The book keeps idle topics up to a bound. Beyond the bound,
the topic that has been idle for longest is *folded*: its totals are added to one sum for all folded
topics of its tenant (`others_of`), or of all tenants if there are too many tenants. If a folded
topic is opened again, its counts start from zero, as after a restart of the process. A topic
without any counts is forgotten at once, so a client that is refused a thousand made-up names leaves
nothing behind.

The same bound holds for open topics, so that clients cannot make the metrics arbitrarily large. A
topic that is opened beyond the bound is *unnamed*. Its accounts work as all others do, but metrics
show its figures as part of the folded topics while it is open, and afterwards its figures are added
to theirs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from gateway.telemetry.figures import NOTHING, OTHER, TENANTS, TopicFigures, Totals, others_of
from gateway.wire.account import Account, Action, Waits
from gateway.wire.subject import Subject, TopicName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

TOPICS_KEPT = 100_000
"""Topics with figures of their own, far above what one process serves, so that only strays are
folded. So many topics with traffic both ways cost 100 MB, hence the bound."""

NAMES_KEPT = 16 * 1024 * 1024
"""Bytes of the names of these topics, which clients choose, as metrics show them: 100,000 usual
names take most of it, and as many of the longest would take twenty times as much."""

NAME_OVERHEAD = 64
"""Bytes that a name takes beside its characters."""

FOLDED_AT_ONCE = 200
"""Topics that are folded in a row: half a millisecond."""

ACCOUNTS_AT_ONCE = 2000
"""Accounts of one topic to sum up in a row: 0.2 ms."""

_Part = tuple[Totals, Waits | None]
"""Sums of some accounts, and their waits."""

_NOTHING: _Part = (NOTHING, None)


class ActionTotals:
    """The totals of one action (produce or consume) on one topic: the summed counts of the accounts
    that are closed, and the accounts that are open.

    As in `Account`, the number of frames is messages minus surplus. `subscriptions`: the number of
    open consumers, by subscription.
    """

    __slots__ = (
        "accounts",
        "bytes",
        "damaged",
        "messages",
        "receipts",
        "redelivered",
        "refused",
        "surplus",
        "waits",
    )

    subscriptions: Mapping[str, int] = {}

    def __init__(self) -> None:
        # None where there is no open account: an empty set is larger than all the rest.
        self.accounts: set[Account] | None = None
        self.messages = self.surplus = self.bytes = self.receipts = self.damaged = 0
        self.refused = self.redelivered = 0
        self.waits: Waits | None = None

    @property
    def has_counts(self) -> bool:
        return bool(self.messages or self.bytes or self.receipts or self.damaged or self.refused)

    def open(self, account: Account) -> None:
        if self.accounts is None:
            self.accounts = set()
        self.accounts.add(account)

    def close(self, account: Account) -> bool:
        """Remove an open account, and add its counts to the totals. Return False, and do nothing,
        if the account is not open."""
        if self.accounts is None or account not in self.accounts:
            return False
        self.accounts.remove(account)
        self.accounts = self.accounts or None
        self.add(account)
        return True

    def add(self, passed: Account | ActionTotals) -> None:
        self.messages += passed.messages
        self.bytes += passed.bytes
        self.surplus += passed.surplus
        self.receipts += passed.receipts
        self.damaged += passed.damaged
        self.refused += passed.refused
        self.redelivered += passed.redelivered
        self.waits = _added(self.waits, passed.waits)

    def totals(self) -> _Part:
        if self.has_counts or self.waits is not None:
            return _sum(self, self.accounts or ())
        if self.accounts is None:
            return _NOTHING
        if len(self.accounts) > 1:
            return _sum(self, self.accounts)
        (account,) = self.accounts  # as of most topics
        return _of(account, len(self.subscriptions))

    def parts(self) -> Iterator[_Part]:
        """Yield the totals in parts, whose sum is the total. The first part fixes which accounts
        count as open, and has the counts of the closed ones. Accounts may open and close between
        two parts."""
        accounts = tuple(self.accounts or ())
        yield _sum(self, ())
        for begin in range(0, len(accounts), ACCOUNTS_AT_ONCE):
            yield _sum(ActionTotals(), accounts[begin : begin + ACCOUNTS_AT_ONCE])


_NO_SUBSCRIPTIONS: dict[str, int] = {}
"""All topics without a consumer share this dict, into which nothing is put."""


class _Consumed(ActionTotals):
    """The totals of the consumers of one topic, and their subscriptions."""

    __slots__ = ("subscriptions",)

    def __init__(self) -> None:
        super().__init__()
        self.subscriptions: dict[str, int] = _NO_SUBSCRIPTIONS

    def open(self, account: Account) -> None:
        super().open(account)
        name = account.subject.subscription
        if name is not None:
            if not self.subscriptions:
                self.subscriptions = {}
            self.subscriptions[name] = self.subscriptions.get(name, 0) + 1

    def close(self, account: Account) -> bool:
        was_open = super().close(account)
        name = account.subject.subscription
        if was_open and name is not None:
            self.subscriptions[name] -= 1
            if not self.subscriptions[name]:
                del self.subscriptions[name]
            self.subscriptions = self.subscriptions or _NO_SUBSCRIPTIONS
        return was_open


_UNUSED = ActionTotals()
"""Stands for an action that a topic was never used for: most are used for one. Nothing is added."""


def _added(waits: Waits | None, more: Waits | None) -> Waits | None:
    """Add waits to others, which are made if there are none."""
    if more is None or not more.by_rule:
        return waits
    total = Waits() if waits is None else waits
    total.add(more)
    return total


def _of(account: Account, subscriptions: int) -> _Part:
    """Return the sum of one account, in half the time of `_sum`."""
    messages = account.messages
    wanted = account.wanted if account.asked else 0  # consumers ask
    row = (
        messages,
        account.bytes,
        messages - account.surplus,
        account.receipts,
        1,
        account.damaged,
        subscriptions,
        wanted,
        account.queued,
        account.refused,
        account.redelivered,
    )
    return Totals._make(row), None if account.waits is None else _added(None, account.waits)


def _sum(closed: ActionTotals, accounts: Collection[Account]) -> _Part:
    messages, surplus, size = closed.messages, closed.surplus, closed.bytes
    receipts, damaged, wanted = closed.receipts, closed.damaged, 0
    held, refused, redelivered = 0, closed.refused, closed.redelivered
    waits = None if closed.waits is None else _added(None, closed.waits)
    for account in accounts:
        messages += account.messages
        surplus += account.surplus
        size += account.bytes
        receipts += account.receipts
        damaged += account.damaged
        wanted += account.wanted
        held += account.queued
        refused += account.refused
        redelivered += account.redelivered
        if account.waits is not None:
            waits = _added(waits, account.waits)
    number, subscriptions, frames = len(accounts), len(closed.subscriptions), messages - surplus
    now = wanted, held, refused, redelivered
    return Totals(messages, size, frames, receipts, number, damaged, subscriptions, *now), waits


class _Topic:
    """`shown`: the name in figures, which several topics may share. `idle_since`: see
    `AccountBook.age`. `denied`: how often clients lacked a right; None if none did."""

    __slots__ = ("consumed", "denied", "idle_since", "produced", "shown", "topic")

    def __init__(self, topic: TopicName) -> None:
        self.topic = self.shown = topic
        self.idle_since = 0.0
        self.denied: Counter[str] | None = None
        self.produced = self.consumed = _UNUSED

    @property
    def name(self) -> str:
        return self.topic.name

    @property
    def is_named(self) -> bool:
        """Return whether metrics show the topic separately, not in a sum."""
        return self.shown is self.topic

    @property
    def is_idle(self) -> bool:
        return self.produced.accounts is None and self.consumed.accounts is None

    @property
    def is_large(self) -> bool:
        open_now = len(self.produced.accounts or ()) + len(self.consumed.accounts or ())
        return open_now > ACCOUNTS_AT_ONCE

    @property
    def has_counts(self) -> bool:
        return self.produced.has_counts or self.consumed.has_counts

    def side(self, action: Action) -> ActionTotals:
        """Return the topic's totals of one action. They are created at the first call."""
        if action is Action.PRODUCE:
            if self.produced is _UNUSED:
                self.produced = ActionTotals()
            return self.produced
        if self.consumed is _UNUSED:
            self.consumed = _Consumed()
        return self.consumed

    def add(self, other: _Topic) -> None:
        self.side(Action.PRODUCE).add(other.produced)
        self.side(Action.CONSUME).add(other.consumed)
        for right, number in (other.denied or {}).items():
            self.deny(right, number)

    def deny(self, right: str, number: int = 1) -> None:
        if self.denied is None:
            self.denied = Counter()
        self.denied[right] += number

    def figures(self) -> TopicFigures:
        made, made_waits = _NOTHING if self.produced is _UNUSED else self.produced.totals()
        taken, taken_waits = _NOTHING if self.consumed is _UNUSED else self.consumed.totals()
        return TopicFigures(self.shown, made, taken, made_waits, taken_waits, self.denied)

    def parts(self) -> Iterator[TopicFigures]:
        denied = self.denied
        both = zip_longest(self.produced.parts(), self.consumed.parts(), fillvalue=_NOTHING)
        for (made, made_waits), (taken, taken_waits) in both:
            yield TopicFigures(self.shown, made, taken, made_waits, taken_waits, denied)
            denied = None


class Watcher(Protocol):
    """Follows the accounts of an `AccountBook`. The book calls `opened` and `closed` once for each
    account. The methods must not raise."""

    def opened(self, account: Account) -> None: ...

    def closed(self, account: Account) -> None: ...


class AccountBook:
    """The accounts of one cluster, by topic. `topics_kept`: the most topics with figures of their
    own. `names_kept`: the most bytes of their names. `idle_kept`: seconds for which an idle topic
    keeps its own figures; None: until a bound is reached. `watchers`: are told of accounts that
    open and close."""

    def __init__(
        self,
        topics_kept: int = TOPICS_KEPT,
        names_kept: int = NAMES_KEPT,
        watchers: Iterable[Watcher] = (),
        idle_kept: float | None = None,
    ) -> None:
        self._idle_kept = idle_kept
        self._now = 0.0
        self._watchers = tuple(watchers)
        self._topics_kept = topics_kept
        self._names_kept = names_kept
        self._names = 0  # bytes of the names of topics with figures of their own
        self._unnamed = 0  # open topics without figures of their own
        self._busy: dict[str, _Topic] = {}
        # The longest idle first. An OrderedDict drops its first entry in constant time.
        self._idle: OrderedDict[str, _Topic] = OrderedDict()
        self._others: dict[str, _Topic] = {}  # folded, by tenant

    def open(self, action: Action, subject: Subject) -> Account:
        """Open an account for an action on the subject's topic, and return it. All accounts of a
        topic share one `TopicName` object.

        The book does not keep the account of a lookup, because a lookup is over at once.
        """
        topic = subject.topic
        assert topic is not None
        if action is Action.LOOKUP:
            return Account(action, subject)
        entry = self._busy.get(topic.name) or self._open_topic(topic)
        account = Account(action, subject.about(entry.topic, subject.subscription))
        entry.side(action).open(account)
        for watcher in self._watchers:
            watcher.opened(account)
        return account

    def close(self, account: Account) -> None:
        """Close an account, and add its counts to the totals of its topic. A second call for the
        same account does nothing."""
        topic = self._busy.get(account.topic)
        if topic is None:
            return
        if topic.side(account.action).close(account):
            for watcher in self._watchers:
                watcher.closed(account)
        if topic.is_idle:
            self._make_idle(topic)

    def deny(self, topic: TopicName, right: str) -> None:
        """Count that a right on a topic was denied; see `telemetry.denials.DeniedTopics`."""
        entry = self._busy.get(topic.name) or self._idle.get(topic.name)
        if entry is not None and entry.is_named:
            entry.deny(right)

    def age(self, now: float) -> Iterator[None]:
        """Fold the topics that have been idle for longer than `idle_kept`: add the totals of each
        to the sum of the folded topics of its tenant. Call this about every minute. The iterator
        yields between parts that take less than a millisecond each. `now`: monotonic seconds."""
        self._now = now
        if self._idle_kept is None:
            return
        folded = 0
        while self._idle:
            first = next(iter(self._idle.values()))
            if first.idle_since > now - self._idle_kept:
                return
            self._fold_first()
            folded += 1
            if folded % FOLDED_AT_ONCE == 0:
                yield

    def topics(self) -> Iterator[TopicFigures]:
        """Yield the figures of all topics, each as of the moment when it is yielded.

        The first step fixes the list of topics; accounts may open and close between two steps. A
        topic with many accounts may come in several parts, and so may the folded topics of a
        tenant; the sum of the parts is the total.
        """
        known = (*self._busy.values(), *self._idle.values())
        yield from [other.figures() for other in self._others.values()]
        for topic in known:
            if topic.is_large:
                yield from topic.parts()
            else:
                yield topic.figures()

    def _open_topic(self, topic: TopicName) -> _Topic:
        entry = self._idle.pop(topic.name, None)
        if entry is None:
            entry = _Topic(topic)
            self._names += _size(topic.name)
        self._busy[entry.name] = entry
        self._fold_idle()
        if self._is_over_bound:
            self._names -= _size(entry.name)
            self._unnamed += 1
            entry.shown = others_of(topic.tenant)
        return entry

    def _make_idle(self, topic: _Topic) -> None:
        del self._busy[topic.name]
        if not topic.is_named:
            self._unnamed -= 1
            self._fold(topic)
        elif topic.has_counts:
            topic.idle_since = self._now
            self._idle[topic.name] = topic
            self._fold_idle()
        else:
            self._names -= _size(topic.name)

    def _fold(self, topic: _Topic) -> None:
        if not topic.has_counts:
            return
        tenant = topic.topic.tenant
        if tenant not in self._others and len(self._others) >= TENANTS:
            tenant = OTHER
        other = self._others.get(tenant)
        if other is None:
            other = self._others[tenant] = _Topic(others_of(tenant))
        other.add(topic)

    def _fold_idle(self) -> None:
        while self._idle and self._is_over_bound:
            self._fold_first()

    def _fold_first(self) -> None:
        name, longest = self._idle.popitem(last=False)
        self._names -= _size(name)
        self._fold(longest)

    @property
    def _is_over_bound(self) -> bool:
        named = len(self._busy) - self._unnamed + len(self._idle)
        return named > self._topics_kept or self._names > self._names_kept


def _size(name: str) -> int:
    """Return the bytes that a name takes at most in metrics, which show some characters as two."""
    doubled = name.count('"') + name.count("\\") + name.count("\n")
    return NAME_OVERHEAD + doubled + len(name) * (1 if name.isascii() else 4)
