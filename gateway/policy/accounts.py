"""The book of accounts: who has a topic open, and what passed on it.

Every producer and consumer that is open has an `Account`, which the scanner writes. When it
closes, its counts are added to those of its topic, so totals per topic never go backwards.

A topic that nobody has open is *idle*. Idle topics are kept, up to a bound; beyond it the one
that is idle for longest is *folded*: its totals join those of all folded topics (`OTHER`).
A topic that is opened again after that starts from zero, as after a restart of the process.
A topic on which nothing ever passed is forgotten at once: a client that is refused a thousand
names, each its own invention, leaves nothing behind.

Topics that are open have the same bound, so that clients do not decide how much the metrics show:
one that is opened where there is no room is *unnamed*. Its accounts work as all others do, but its
figures are those of `OTHER` until nobody has it open, and are folded then.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import zip_longest
from typing import TYPE_CHECKING

from gateway.telemetry.figures import OTHER, TopicFigures, Totals
from gateway.wire.account import Account, Action
from gateway.wire.subject import Subject, TopicName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# Far above what one process serves, so that only strays are folded. Where every one of them
# saw traffic both ways they cost 85 MB here, which is why there is a bound at all.
TOPICS_KEPT = 100_000

NAMES_KEPT = 16 * 1024 * 1024
"""Bytes of the names of these topics, which clients choose, as metrics show them: 100,000 usual
names have most of it, and as many of the longest would have twenty times as much."""

ENTRY = 64
"""Bytes that a name takes beside its characters."""

ACCOUNTS_AT_ONCE = 2000
"""Accounts of one topic that are summed up in a row: 0.2 ms."""

_NOTHING = Totals(0, 0, 0, 0, 0)


class _Side:
    """One action on one topic: the counts of closed accounts, and the open ones.

    It counts as accounts do: frames are messages without surplus.
    """

    __slots__ = ("accounts", "bytes", "damaged", "messages", "receipts", "surplus")

    def __init__(self) -> None:
        # None where nobody is there: an empty set is larger than all the rest.
        self.accounts: set[Account] | None = None
        self.messages = self.surplus = self.bytes = self.receipts = self.damaged = 0

    @property
    def has_counts(self) -> bool:
        return bool(self.messages or self.bytes or self.receipts or self.damaged)

    def open(self, account: Account) -> None:
        if self.accounts is None:
            self.accounts = set()
        self.accounts.add(account)

    def close(self, account: Account) -> None:
        """Take an account over, once: a second time it is not there."""
        if self.accounts is None or account not in self.accounts:
            return
        self.accounts.remove(account)
        self.accounts = self.accounts or None
        self.add(account)

    def add(self, passed: Account | _Side) -> None:
        self.messages += passed.messages
        self.bytes += passed.bytes
        self.surplus += passed.surplus
        self.receipts += passed.receipts
        self.damaged += passed.damaged

    @property
    def is_large(self) -> bool:
        return self.accounts is not None and len(self.accounts) > ACCOUNTS_AT_ONCE

    def totals(self) -> Totals:
        return _summed(self, self.accounts or ())

    def parts(self) -> Iterator[Totals]:
        """The same in parts, which add up. Accounts may open and close between two of them: who is
        there is settled at the first, as is what those have counted that are closed by then."""
        accounts = tuple(self.accounts or ())
        yield _summed(self, ())
        for begin in range(0, len(accounts), ACCOUNTS_AT_ONCE):
            yield _summed(_Side(), accounts[begin : begin + ACCOUNTS_AT_ONCE])


def _summed(closed: _Side, accounts: Collection[Account]) -> Totals:
    messages, surplus, size = closed.messages, closed.surplus, closed.bytes
    receipts, damaged = closed.receipts, closed.damaged
    for account in accounts:
        messages += account.messages
        surplus += account.surplus
        size += account.bytes
        receipts += account.receipts
        damaged += account.damaged
    return Totals(messages, size, messages - surplus, receipts, len(accounts), damaged)


class _Topic:
    """`is_named`: it has figures of its own."""

    __slots__ = ("consumed", "is_named", "name", "produced", "topic")

    def __init__(self, topic: TopicName) -> None:
        self.topic = topic
        self.name = topic.name
        self.is_named = True
        self.produced = _Side()
        self.consumed = _Side()

    @property
    def is_idle(self) -> bool:
        return self.produced.accounts is None and self.consumed.accounts is None

    @property
    def has_counts(self) -> bool:
        return self.produced.has_counts or self.consumed.has_counts

    def side(self, action: Action) -> _Side:
        return self.produced if action is Action.PRODUCE else self.consumed

    def add(self, other: _Topic) -> None:
        self.produced.add(other.produced)
        self.consumed.add(other.consumed)

    @property
    def is_large(self) -> bool:
        return self.produced.is_large or self.consumed.is_large

    @property
    def _shown(self) -> TopicName:
        return self.topic if self.is_named else OTHER

    def figures(self) -> TopicFigures:
        return TopicFigures(self._shown, self.produced.totals(), self.consumed.totals())

    def parts(self) -> Iterator[TopicFigures]:
        both = zip_longest(self.produced.parts(), self.consumed.parts(), fillvalue=_NOTHING)
        return (TopicFigures(self._shown, *sides) for sides in both)


class AccountBook:
    """All accounts of one cluster. `topics_kept` bounds the topics that have figures of their own,
    `names_kept` the bytes of their names."""

    def __init__(self, topics_kept: int = TOPICS_KEPT, names_kept: int = NAMES_KEPT) -> None:
        self._topics_kept = topics_kept
        self._names_kept = names_kept
        self._names = 0  # bytes of the names of topics that have figures of their own
        self._unnamed = 0  # of those that are open
        self._busy: dict[str, _Topic] = {}
        # The longest idle first. Only this dictionary forgets its first entry at no cost.
        self._idle: OrderedDict[str, _Topic] = OrderedDict()
        self._other = _Topic(OTHER)

    def open(self, action: Action, subject: Subject) -> Account:
        """Return a new account of a subject with a topic. All accounts of a topic share its
        `TopicName`.

        A lookup is over at once: its account is not kept.
        """
        topic = subject.topic
        assert topic is not None
        if action is Action.LOOKUP:
            return Account(action, subject)
        found = self._busy.get(topic.name) or self._woken(topic)
        account = Account(action, subject.about(found.topic, subject.subscription))
        found.side(action).open(account)
        return account

    def close(self, account: Account) -> None:
        """Keep the counts of an account that is over; once only, however often it is called."""
        topic = self._busy.get(account.topic)
        if topic is None:
            return
        topic.side(account.action).close(account)
        if topic.is_idle:
            self._rest(topic)

    def topics(self) -> Iterator[TopicFigures]:
        """Answer the figures of all topics, each at the moment it is asked for.

        Which topics there are is settled at the first; the book may change between any two. One
        topic may come in several parts, which add up, and so does `OTHER`.
        """
        known = (*self._busy.values(), *self._idle.values())
        if self._other.has_counts:
            yield self._other.figures()
        for topic in known:
            if topic.is_large:
                yield from topic.parts()
            else:
                yield topic.figures()

    def _woken(self, topic: TopicName) -> _Topic:
        found = self._idle.pop(topic.name, None) or self._new(topic)
        self._busy[found.name] = found
        self._fold()
        if self._are_too_many:
            self._names -= _size(found.name)
            self._unnamed += 1
            found.is_named = False
        return found

    def _new(self, topic: TopicName) -> _Topic:
        self._names += _size(topic.name)
        return _Topic(topic)

    def _rest(self, topic: _Topic) -> None:
        del self._busy[topic.name]
        if not topic.is_named:
            self._unnamed -= 1
            self._other.add(topic)
        elif topic.has_counts:
            self._idle[topic.name] = topic
            self._fold()
        else:
            self._names -= _size(topic.name)

    def _fold(self) -> None:
        while self._idle and self._are_too_many:
            name, longest = self._idle.popitem(last=False)
            self._names -= _size(name)
            self._other.add(longest)

    @property
    def _are_too_many(self) -> bool:
        named = len(self._busy) - self._unnamed + len(self._idle)
        return named > self._topics_kept or self._names > self._names_kept


def _size(name: str) -> int:
    """Return the bytes that a name takes, at most, as metrics show it: some characters as two."""
    doubled = name.count('"') + name.count("\\") + name.count("\n")
    return ENTRY + doubled + len(name) * (1 if name.isascii() else 4)
