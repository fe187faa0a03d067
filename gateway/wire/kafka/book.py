"""The accounts of one connection, by topic: the first frame that names a topic opens its account.

A frame names a topic by its name or by its id. What a client may not use is refused by an error
code, which its response gets; what nobody here knows yet, such as the name of an id, by one after
which clients try again, while the gateway finds it out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from gateway.wire.account import Account, Action, Right
from gateway.wire.contract import Denial
from gateway.wire.first_use import Accounts
from gateway.wire.kafka.context import Client
from gateway.wire.kafka.errors import ErrorCode, of_topic
from gateway.wire.kafka.names import EVERY_TOPIC, REFUSED, is_name, read_topic, readable
from gateway.wire.kafka.sessions import Sessions
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.services import Services, Undecided
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Subject

ACCOUNT_SIZE = 900
"""Bytes of the budget that an open account takes."""

MOST_ASKED = 1000
"""Rights that are asked for at once. Who needs more tries again for the others."""

MOST_UNKNOWN = 250
"""The most ids of topics, unknown to the gateway, in one Metadata request of a client or of the
gateway itself. Brokers (4.3) compare each unknown id in a request with all others, so 19,000 ids
keep a thread busy for minutes, 250 for some 20 ms."""

RIGHTS = {Action.PRODUCE: Right.PRODUCE, Action.CONSUME: Right.CONSUME}

STRAY = Account(Action.PRODUCE)
"""Stands in for topics whose names no broker accepts. Nothing is counted on it."""

Tables = tuple[dict[bytes, Account], ...]
"""Accounts by name, and by id, of their topics. Names of 16 bytes are told apart from ids so."""

_NO_TABLES: Tables = ({}, {})
"""The tables of all books without accounts. Nobody adds to them."""


class Reader(Protocol):
    """Remembers the account of the topic that it has read last."""

    def forget(self, account: Account) -> None:
        """Forget the account of the last topic: `account` was closed."""


class Book(Accounts[bytes]):
    """`produced`, `consumed`: open accounts, to which the book alone adds some. `wanted`: ids whose
    names have to be asked for. `undecided`: questions about rights that have to be asked.
    `has_new`: an account was opened since the session last decided anything. `sessions`: those that
    the connection may use. `readers`: are told of accounts that are closed."""

    __slots__ = (
        "_client",
        "_ids",
        "_refused",
        "_stopwatch",
        "consumed",
        "has_new",
        "produced",
        "readers",
        "sessions",
        "undecided",
        "wanted",
    )

    def __init__(
        self,
        services: Services,
        client: Client,
        ids: TopicIds,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        super().__init__(services, client.quota, ACCOUNT_SIZE)
        self._stopwatch = stopwatch
        self._client = client
        self._ids = ids
        # Connections are many, and most of them never have any of these.
        self.produced = self.consumed = _NO_TABLES
        self._refused: dict[bytes, Account] = {}
        self.has_new = False
        self.readers: tuple[Reader, ...] = ()
        self.sessions = Sessions()
        self.wanted: Collection[bytes] = ()
        self.undecided: Sequence[Callable[[], Awaitable[None]]] = ()

    @property
    def has_questions(self) -> bool:
        """Return whether anything has to be asked."""
        return bool(self.wanted or self.undecided)

    def name(self, id: bytes, *, wanted: bool = True) -> bytes | None:
        """Return the name of a topic; None: it is not known. `wanted`: it is asked for then."""
        name = self._ids.name(id)
        if name is None and wanted and len(self.wanted) < MOST_UNKNOWN:
            if not isinstance(self.wanted, dict):
                self.wanted = dict[bytes, None]()
            self.wanted[id] = None
        return name

    def has(self, action: Action, topic: bytes, *, by_id: bool) -> bool:
        """Return whether a topic has an account."""
        tables = self.produced if action is Action.PRODUCE else self.consumed
        return topic in tables[by_id]

    def use(self, action: Action, topic: bytes, *, by_id: bool) -> Account | ErrorCode:
        """Return the account of a topic, opening it at its first use; or the error code that
        refuses the topic."""
        tables = self.produced if action is Action.PRODUCE else self.consumed
        account = tables[by_id].get(topic)
        if account is not None:
            return account
        name = self.name(topic) if by_id else topic
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not is_name(name):
            return STRAY
        found = self._open(action, name.decode())
        if isinstance(found, Account):
            self.keep(self._own(action, by_id=by_id), topic, found)
            self.has_new = True
        elif by_id:
            return self.of_id(name, found)
        return found

    def refused(self, action: Action) -> Account | None:
        """Return the account that is charged for what the client may not produce, or for the errors
        that it gets in place of messages; None if there is no room for it. No topic has it, so
        nothing passes by it."""
        key = action.encode()
        account = self._refused.get(key)
        if account is None:
            opened = self.admit(action, self._client.subject.about(REFUSED))
            if isinstance(opened, Denial):
                return None
            account = opened
            self.keep(self._refused, key, account)
            self.has_new = True
        return account

    def of_id(self, name: bytes, error: ErrorCode) -> ErrorCode:
        """Return the error for a topic that a request has named by its id. A client that may not
        look the topic up is told what it is told of an unknown id, as by brokers (KIP-516)."""
        return ErrorCode.UNKNOWN_TOPIC_ID if self.hides(name) else error

    def hides(self, name: bytes) -> bool:
        """Return whether the client may not look a topic up. Nothing is counted."""
        topic = read_topic(readable(name))
        may = self._services.which(Right.LOOKUP, self._client.subject)
        return topic is not None and not may(topic)

    @property
    def is_guarded(self) -> bool:
        """Return whether clients' requests have to be authorized."""
        return self._services.guarded

    def _own(self, action: Action, *, by_id: bool) -> dict[bytes, Account]:
        """Return the book's own table of an action. The first call makes it."""
        tables = self.produced if action is Action.PRODUCE else self.consumed
        if tables[by_id] is _NO_TABLES[by_id]:
            tables = (tables[0], {}) if by_id else ({}, tables[1])
            if action is Action.PRODUCE:
                self.produced = tables
            else:
                self.consumed = tables
        return tables[by_id]

    def _open(self, action: Action, name: str) -> Account | ErrorCode:
        topic = read_topic(name)
        assert topic is not None
        subject = self._client.subject.about(topic)
        if self._services.guarded:
            refused = self.forbid(RIGHTS[action], subject)
            if isinstance(refused, Undecided):
                return ErrorCode.NOT_LEADER
            if refused is not None:
                return _told(action, of_topic(refused.refusal, ErrorCode.NOT_LEADER))
        account = self.admit(action, subject)
        if isinstance(account, Denial):
            return _told(action, of_topic(account.refusal, ErrorCode.NOT_LEADER))
        account.ends = self._services.ends(topic)
        if self._stopwatch is not None and action is Action.PRODUCE:
            # All topics have the one tenant, so that no client invents it.
            self._stopwatch.opened(account, self._services.latencies(subject, proven=True))
        return account

    def refuses_transaction(self, name: bytes) -> ErrorCode | None:
        """Return why the client may not produce in a transaction; None: it may. An empty name is
        one: brokers judge it, by the gateway's principal. Raises `PeerError` if it cannot be
        read."""
        if not self._services.guarded:
            return None
        subject = Subject(self._client.subject.caller, None, readable(name))
        match self.forbid(Right.PRODUCE, subject):
            case None:
                return None
            case Undecided():
                return ErrorCode.NOT_LEADER
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    def forbid(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Return why the client may not do something, and note what has to be asked about it."""
        refused = self._services.forbid(right, subject)
        if isinstance(refused, Undecided):
            if not isinstance(self.undecided, list):
                self.undecided = []
            if len(self.undecided) < MOST_ASKED:
                self.undecided.append(refused.ask)
        return refused

    def forbid_all(self, right: Right, subject: Subject) -> Denial | None:
        """Return why the client may not do something to some topic of the cluster."""
        return self._services.forbid_all(right, subject, EVERY_TOPIC)

    def _is_used(self, account: Account, busy: Collection[Account | None]) -> bool:
        """Return whether an account stays open, because it awaits receipts or is `busy`."""
        awaits = account.action is Action.PRODUCE and account.outstanding != 0
        return awaits or account in busy

    def _close(self, account: Account) -> None:
        for reader in self.readers:
            reader.forget(account)
        if self._stopwatch is not None:
            self._stopwatch.closed(account)
        super()._close(account)


def _told(action: Action, error: ErrorCode) -> ErrorCode:
    """Return the error that a client is told. Consumers take one that no Fetch has for a bug of
    theirs, so they get the only one there that does not have them try again at once."""
    lasts = error in (ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_TOPIC)
    if action is Action.CONSUME and lasts:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return error
