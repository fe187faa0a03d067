"""Judges requests by rights and limits, and has the accounts of one connection."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from gateway.wire.account import Account, Action, Right
from gateway.wire.budget import Quota
from gateway.wire.contract import Denial, Refusal
from gateway.wire.first_use import Accounts
from gateway.wire.services import Services, Undecided
from gateway.wire.subject import Subject, TopicName
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.answering import refused
from gateway.wire.tubemq.errors import ErrorCode
from gateway.wire.tubemq.names import is_group, read_topic
from gateway.wire.tubemq.waiting import Overdrawn

ACCOUNT_SIZE = 2_000
"""Bytes of the budget that an open account takes, with the name of a group."""

LONGEST_WAIT = 60.0
"""Seconds for which a consumer is told to wait at most; then it asks again."""

_NO_NAME = Denial(Refusal.NAME, "no topic has this name")
_UNDECIDED = Denial(Refusal.UNAUTHORIZED, "nobody has said yet who may do this")

_OF_PARTITION = frozenset({methods.GET_MESSAGES, methods.COMMIT, methods.REGISTER_PARTITION})

_TOPICS_TOLD = {
    methods.BEAT_PRODUCER: ("topicInfos", Right.PRODUCE),
    methods.BEAT_BALANCED: ("topicMetaInfoList", Right.CONSUME),
    methods.FIND_PARTITIONS: ("topicMetaInfoList", Right.CONSUME),
}
"""By method: the field of a reply that tells which brokers have a topic, and the right that clients
need for it."""

Ask = Callable[[], Awaitable[None]]


class _Use(NamedTuple):
    """What an account is of. `principal`: None if nobody knows it."""

    action: Action
    principal: str | None
    topic: str
    group: str


class Judge(Accounts[_Use]):
    """Judges the requests of one connection. `undecided`: what has to be asked before the request
    can be judged that was judged last; until somebody has, it is denied."""

    __slots__ = ("_accounts", "undecided")

    def __init__(self, services: Services, quota: Quota) -> None:
        self._accounts: dict[_Use, Account] = {}
        super().__init__(services, quota, ACCOUNT_SIZE, (self._accounts,))
        self.undecided: list[Ask] = []

    def judge(
        self, number: int, message: Any, client: Subject, *, has_waited: bool = False
    ) -> Account | Overdrawn | bytes | None:
        """Return the account of a request that may go on, None if it has none, or the message that
        answers it in place of the server. `Overdrawn`: it has to wait, which it has not yet."""
        self.undecided = []
        if number == methods.SEND_MESSAGE:
            return self._send(message, client, has_waited=has_waited)
        if number in _OF_PARTITION:
            return self._of_partition(number, message, client)
        if number in methods.REGISTER:
            return self._topics(number, message, client)
        return None

    def show_allowed(self, number: int, message: Any, client: Subject) -> None:
        """Take the topics from a reply on which the client has no right. Nothing is counted."""
        field, right = _TOPICS_TOLD.get(number, ("", Right.CONSUME))
        if not field or not self._services.guarded:
            return
        may = self._services.which(right, client)
        told = getattr(message, field)
        told[:] = [it for it in told if _is_of(it, may)]

    # -- requests ----------------------------------------------------------------------------

    def _send(
        self, message: Any, client: Subject, *, has_waited: bool
    ) -> Account | Overdrawn | bytes:
        method = methods.METHODS[methods.SEND_MESSAGE]
        account = self._account(Action.PRODUCE, client, message.topicName)
        if isinstance(account, Denial):
            return refused(method, ErrorCode.UNAUTHORIZED, account.text)
        if not has_waited and (
            account.queued or (account.held and not self._services.wants(account))
        ):
            return Overdrawn(account)
        account.count(1)
        account.bytes += len(message.data)
        return account

    def _of_partition(self, number: int, message: Any, client: Subject) -> Account | bytes | None:
        method = methods.METHODS[number]
        account = self._account(Action.CONSUME, client, message.topicName, message.groupName)
        if isinstance(account, Denial):
            return refused(method, ErrorCode.UNAUTHORIZED, account.text)
        if number != methods.GET_MESSAGES:
            return None
        if account.held and not self._services.wants(account):
            wait = math.ceil(1000 * min(LONGEST_WAIT, self._services.due_in(account)))
            text = "above the limit of what may be received"
            return refused(method, ErrorCode.TOO_FAST, text, minLimitTime=max(1, wait))
        return account

    def _topics(self, number: int, message: Any, client: Subject) -> bytes | None:
        """Judge the topics to which a group subscribes."""
        for topic in message.topicList:
            denied = self._forbids(Right.CONSUME, client, read_topic(topic), message.groupName)
            if denied is not None:
                code = ErrorCode.GROUP_FORBIDDEN
                return refused(methods.METHODS[number], code, denied.text)
        return None

    # -- accounts and rights -----------------------------------------------------------------

    def _account(
        self, action: Action, client: Subject, topic: str, group: str = ""
    ) -> Account | Denial:
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
            self._accounts[use] = opened
        return opened

    def _forbids(
        self, right: Right, client: Subject, topic: TopicName | None, group: str
    ) -> Denial | None:
        if topic is None or not is_group(group):
            return _NO_NAME
        if not self._services.guarded:
            return None
        denied = self._services.forbid(right, client.about(topic, group or None))
        if isinstance(denied, Undecided):
            self.undecided.append(denied.ask)
            return _UNDECIDED
        return denied

    @property
    def is_idle(self) -> bool:
        """Return whether no account is open."""
        return not self._accounts


def _is_of(told: str, may: Callable[[TopicName], bool]) -> bool:
    """Return whether a text that begins with a topic is of one that fits."""
    topic = read_topic(told.partition("#")[0])
    return topic is not None and may(topic)
