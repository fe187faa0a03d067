"""Judges requests by rights and limits, and has the accounts of one connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from gateway.wire.account import Account, Action, Right
from gateway.wire.budget import Quota
from gateway.wire.contract import Denial, Refusal
from gateway.wire.first_use import Accounts
from gateway.wire.services import Services, Undecided
from gateway.wire.slices import Slices
from gateway.wire.subject import Subject, TopicName
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.answering import refused
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.fields import Care, places
from gateway.wire.tubemq.methods import Method
from gateway.wire.tubemq.names import ANY_TOPIC, REFUSED, May, read_topic
from gateway.wire.tubemq.waiting import Overdrawn

ACCOUNT_SIZE = 2_000
"""Bytes of the budget that an open account takes, with the name of a group."""

_REFUSED = "(refused)"
"""Stands for a group in the use of what a client may not send: producers have no group, so no topic
has its account."""

_NO_NAME = Denial(Refusal.NAME, "no topic has this name")
_UNDECIDED = "nobody has said yet who may do this"

_OF_PARTITION = frozenset({methods.GET_MESSAGES, methods.COMMIT, methods.REGISTER_PARTITION})

_OF_OWN = frozenset({methods.BEAT_CONSUMER, methods.BEAT_PARTITIONS})
"""Methods whose replies name only topics to which the client has subscribed before."""

MOST_TOPICS = 1024
"""The most topics of one request; servers refuse more."""

_JUDGED_AT_ONCE = 8
"""Topics that are authorized in one slice: with a thousand rules each takes 200 µs."""

Ask = Callable[[], Awaitable[None]]


class _Use(NamedTuple):
    """What an account is of. `principal`: None if nobody knows it."""

    action: Action
    principal: str | None
    topic: str
    group: str


class Filter:
    """Says which topics of a list the client may use. `missing`: the first of them that it may not
    use. `which`: returns what says so, by going through all rules; most messages have no list."""

    __slots__ = ("_may", "_which", "missing")

    def __init__(self, which: Callable[[], May]) -> None:
        self._which = which
        self._may: May | None = None
        self.missing: TopicName | None = None

    def __call__(self, topic: TopicName) -> bool:
        """Return whether the client may use a topic."""
        if self._may is None:
            self._may = self._which()
        may = self._may(topic)
        if not may and self.missing is None:
            self.missing = topic
        return may


class Unasked(NamedTuple):
    """What has to be asked before a request can be judged. `reply`: answers it if nobody can be
    asked."""

    asks: tuple[Ask, ...]
    reply: bytes


Outcome = Account | Overdrawn | Unasked | bytes | None
"""The outcome of a request: the account of one that may go on, None if it has none; or the message
that answers it in place of the server. `Overdrawn`: it has to wait, which it has not yet."""


class Judge(Accounts[_Use]):
    """Judges the requests of one connection."""

    __slots__ = ("_accounts",)

    def __init__(self, services: Services, quota: Quota) -> None:
        self._accounts: dict[_Use, Account] = {}
        super().__init__(services, quota, ACCOUNT_SIZE)

    def judge(
        self, number: int, message: Any, client: Subject, *, has_waited: bool = False
    ) -> Slices[Outcome]:
        """Return the outcome of a request. `has_waited`: a limit does not hold it any longer."""
        if number == methods.SEND_MESSAGE:
            return self._send(message, client, has_waited=has_waited)
        if number in _OF_PARTITION:
            return self._of_partition(number, message, client)
        return (yield from self._of_group(number, message, client))

    def filter(self, number: int, client: Subject, group: str) -> Filter | None:
        """Return which topics may stay in the lists of a client's request; None: all of them."""
        return self._filter(self._services.which_named, number, client, group)

    def count(self, number: int, client: Subject, group: str, missing: TopicName | None) -> None:
        """Count one denial for a request from which topics were left out. `missing`: one of them;
        None if all have stayed."""
        if missing is not None:
            self._services.forbid(methods.right_of(number), client.about(missing, group or None))

    def shown(self, number: int, client: Subject, group: str) -> Filter | None:
        """Return which topics may stay in the lists of a reply; None: all of them. Nothing is
        counted."""
        # A client has named the topics of its own subscriptions.
        services = self._services
        which = services.which_named if number in _OF_OWN else services.which
        return self._filter(which, number, client, group)

    def _filter(
        self, which: Callable[[Right, Subject], May], number: int, client: Subject, group: str
    ) -> Filter | None:
        if not self._services.guarded:
            return None
        subject = Subject(client.caller, None, group or None)
        return Filter(partial(which, methods.right_of(number), subject))

    # -- requests ----------------------------------------------------------------------------

    def _send(self, message: Any, client: Subject, *, has_waited: bool) -> Outcome:
        method = methods.METHODS[methods.SEND_MESSAGE]
        account = self._account(Action.PRODUCE, client, message.topicName)
        refusal = None if isinstance(account, Account) else _refused(method, account)
        if isinstance(account, Denial):
            account = self._refused_of(client)
        if not isinstance(account, Account):
            return refusal
        size = len(message.data)
        if not has_waited:
            if account.queued:
                return Overdrawn(account)
            account.needs = size
            if account.is_short and not self._services.wants(account):
                return Overdrawn(account)
            account.needs = 0
        account.count(1)
        account.bytes += size
        if refusal is None:
            return account
        account.receipts += 1
        return refusal

    def _refused_of(self, client: Subject) -> Account | Denial:
        """Return the account that is charged for what a client may not send."""
        use = _Use(Action.PRODUCE, client.principal, "", _REFUSED)
        account = self._accounts.get(use)
        if account is not None:
            return account
        opened = self.admit(Action.PRODUCE, client.about(REFUSED))
        if isinstance(opened, Account):
            self.keep(self._accounts, use, opened)
        return opened

    def _of_partition(self, number: int, message: Any, client: Subject) -> Outcome:
        method = methods.METHODS[number]
        account = self._account(Action.CONSUME, client, message.topicName, message.groupName)
        if not isinstance(account, Account):
            return _refused(method, account)
        if number != methods.GET_MESSAGES:
            return None
        # What a reply will bring is not known, but that of most is much the same.
        account.needs = account.bytes // max(1, account.frames)
        if account.is_short and not self._services.wants(account):
            return Overdrawn(account)
        return account

    def _of_group(self, number: int, message: Any, client: Subject) -> Slices[Outcome]:
        """Judge the group of a request, and the topics to which it subscribes."""
        method = methods.METHODS[number]
        for _, name, care in places(message.DESCRIPTOR):
            outcome: Outcome = None
            if care is Care.GROUP:
                outcome = self._group(method, client, message.groupName)
            elif care is Care.JUDGED:
                topics = list(getattr(message, name))
                outcome = yield from self._topics(method, topics, client, message.groupName)
            if outcome is not None:
                return outcome
        return None

    def _group(self, method: Method, client: Subject, group: str) -> Outcome:
        if not self._services.guarded:
            return None
        subject = Subject(client.caller, None, group)
        denied = self._services.forbid_any(Right.CONSUME, subject, ANY_TOPIC)
        return None if denied is None else _refused(method, denied)

    def _topics(
        self, method: Method, topics: list[str], client: Subject, group: str
    ) -> Slices[Outcome]:
        """Judge topics until the first that is denied. All that have to be asked are asked
        together."""
        if len(topics) > MOST_TOPICS:
            return refused(method, ErrorCode.BAD_REQUEST, f"more than {MOST_TOPICS} topics")
        undecided: list[Undecided] = []
        for place, topic in enumerate(topics):
            if place and place % _JUDGED_AT_ONCE == 0:
                yield
            denied = self._forbids(Right.CONSUME, client, read_topic(topic), group)
            if isinstance(denied, Undecided):
                undecided.append(denied)
            elif denied is not None:
                return _refused(method, denied)
        return _refused(method, *undecided) if undecided else None

    # -- accounts and rights -----------------------------------------------------------------

    def _account(
        self, action: Action, client: Subject, topic: str, group: str = ""
    ) -> Account | Denial | Undecided:
        """Return the account of a topic, which its first use opens, or why there is none."""
        use = _Use(action, client.principal, topic, group)
        account = self._accounts.get(use)
        if account is not None:
            return account
        name = read_topic(topic)
        right = Right.PRODUCE if action is Action.PRODUCE else Right.CONSUME
        denied = self._forbids(right, client, name, group)
        if denied is not None:
            return denied
        assert name is not None
        opened = self.admit(action, client.about(name, group or None))
        if isinstance(opened, Account):
            self.keep(self._accounts, use, opened)
        return opened

    def _forbids(
        self, right: Right, client: Subject, topic: TopicName | None, group: str
    ) -> Denial | Undecided | None:
        if topic is None:
            return _NO_NAME
        if not self._services.guarded:
            return None
        return self._services.forbid(right, client.about(topic, group or None))


def _refused(method: Method, *reasons: Denial | Undecided) -> bytes | Unasked:
    """Return the reply to a request without a right, or what has to be asked first."""
    code = ErrorCode.GROUP_FORBIDDEN if method.of_master else ErrorCode.UNAUTHORIZED
    asks = tuple(reason.ask for reason in reasons if isinstance(reason, Undecided))
    text = next((reason.text for reason in reasons if isinstance(reason, Denial)), _UNDECIDED)
    reply = refused(method, code, text)
    return Unasked(asks, reply) if asks else reply
