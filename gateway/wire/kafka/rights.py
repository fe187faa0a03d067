"""The rights that a client needs for each API, on listeners whose clients are authorized by rules
or by a policy agent.

Rights are on topics. Rules match a consumer group, and also a producer's transactional id, by their
field `subscription`. A request about the cluster, not about single topics, needs the right to
administer.

If the client lacks a right on one topic of a request, only this topic is denied: the broker gets a
substitute in its place, and the client gets the topic's own name with an error (`substitutes`). If
the client lacks any other right, the whole request is refused (`synthetic`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from gateway.wire.account import Right
from gateway.wire.contract import Denial
from gateway.wire.kafka.addresses import METADATA
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.context import Client
from gateway.wire.kafka.errors import ErrorCode, of_topic
from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.lists import of_all
from gateway.wire.kafka.names import read_topic, readable
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.topics import NONE
from gateway.wire.kafka.walk import Place, plan, text_at
from gateway.wire.services import Undecided
from gateway.wire.subject import Subject


class Needs(NamedTuple):
    """The rights that an API needs. `topics`: the right on each topic. `names`: the paths of the
    fields that name these topics. `groups`: the paths of consumer groups, which need the right to
    consume. `transactions`: the paths of transactional ids, which need the right to produce.
    `cluster`: the API needs the right to administer."""

    topics: Right | None = None
    names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactions: tuple[str, ...] = ()
    cluster: bool = False


_NAME, _IDS = ("Topics/Name", "Topics/TopicId"), ("Topics/TopicId",)
_GROUP, _TRANSACTION = ("GroupId",), ("TransactionalId",)
_NOTHING = Needs()
_CLUSTER = Needs(cluster=True)

NEEDS = {
    0: _NOTHING,  # authorized while it passes, its transactional id too
    1: _NOTHING,  # authorized by `fetching`
    2: Needs(Right.LOOKUP, _NAME),
    3: Needs(Right.LOOKUP, _NAME),
    8: Needs(Right.CONSUME, _NAME, _GROUP),
    9: Needs(
        Right.LOOKUP,
        (*_NAME, "Groups/Topics/Name", "Groups/Topics/TopicId"),
        ("GroupId", "Groups/GroupId"),
    ),
    10: _NOTHING,  # the response has a coordinator's address, and nothing of the group
    11: Needs(groups=_GROUP),
    12: Needs(groups=_GROUP),
    13: Needs(groups=_GROUP),
    14: Needs(groups=_GROUP),
    15: Needs(groups=("Groups[]",)),
    16: _CLUSTER,
    17: _NOTHING,
    18: _NOTHING,
    19: Needs(Right.ADMINISTER, _NAME),
    20: Needs(Right.ADMINISTER, (*_NAME, "TopicNames[]")),
    21: Needs(Right.ADMINISTER, _NAME),
    22: Needs(transactions=_TRANSACTION),
    23: Needs(Right.LOOKUP, ("Topics/Topic",)),
    24: Needs(
        Right.PRODUCE,
        ("Transactions/Topics/Name", "V3AndBelowTopics/Name"),
        transactions=("Transactions/TransactionalId", "V3AndBelowTransactionalId"),
    ),
    25: Needs(groups=_GROUP, transactions=_TRANSACTION),
    26: Needs(transactions=_TRANSACTION),
    27: _CLUSTER,
    28: Needs(Right.CONSUME, _NAME, _GROUP, _TRANSACTION),
    **dict.fromkeys(range(29, 36), _CLUSTER),
    36: _NOTHING,
    37: Needs(Right.ADMINISTER, _NAME),
    **dict.fromkeys(range(38, 42), _CLUSTER),
    42: Needs(groups=("GroupsNames[]",)),
    43: Needs(Right.ADMINISTER, ("TopicPartitions/Topic",)),
    44: _CLUSTER,
    45: Needs(Right.ADMINISTER, _NAME),
    46: Needs(Right.ADMINISTER, _NAME),
    47: Needs(Right.CONSUME, _NAME, _GROUP),
    **dict.fromkeys(range(48, 52), _CLUSTER),
    55: _CLUSTER,
    57: _CLUSTER,
    60: _NOTHING,  # Metadata has the same
    61: Needs(Right.CONSUME, _NAME),
    64: _CLUSTER,
    65: Needs(transactions=("TransactionalIds[]",)),
    66: _CLUSTER,
    68: Needs(Right.LOOKUP, ("SubscribedTopicNames[]",), _GROUP),
    69: Needs(groups=("GroupIds[]",)),
    71: _NOTHING,
    72: _NOTHING,
    74: _CLUSTER,
    75: Needs(Right.LOOKUP, (*_NAME, "Cursor/TopicName")),
    76: Needs(Right.LOOKUP, ("SubscribedTopicNames[]",), _GROUP),
    77: Needs(groups=("GroupIds[]",)),
    78: Needs(Right.CONSUME, (*_IDS, "ForgottenTopicsData/TopicId"), _GROUP),
    79: Needs(Right.CONSUME, _IDS, _GROUP),
    88: _CLUSTER,  # brokers create topics of any name for it
    89: Needs(groups=("GroupIds[]",)),
    90: Needs(Right.LOOKUP, ("Groups/Topics/TopicName",), ("Groups/GroupId",)),
    91: Needs(Right.CONSUME, ("Topics/TopicName",), _GROUP),
    92: Needs(Right.CONSUME, ("Topics/TopicName",), _GROUP),
}
"""By API key. A new release of Kafka with an API that is not here fails a test."""

EXPRESSIONS = {68: "SubscribedTopicRegex"}
"""By API key: the field with an expression by which a broker selects topics itself, among all
topics of the cluster."""


class Rights:
    """Authorizes the requests of one connection. `book`: the connection's accounts; it notes which
    topic names and rights the gateway must look up before it can authorize a request."""

    __slots__ = ("_book", "_client", "_substitutes")

    def __init__(self, client: Client, book: Book, substitutes: Substitutes) -> None:
        self._client = client
        self._book = book
        self._substitutes = substitutes

    def authorize(self, schema: Schema, head: Head, frame: bytes) -> bytes | ErrorCode:
        """Return the frame to send to the broker for a request, or the error code that refuses the
        request. Raises `PeerError` if the request is truncated."""
        needs = NEEDS[head.key]
        wanted = plan(schema, head.version, _wanted(head.key), whole=True)
        places = wanted.walk(frame, head.body, len(frame)).places
        flexible = head.version >= schema.flexible
        if needs.cluster:
            return self._on_cluster() or frame
        if any(_names_none(path, places) for path in of_all(head.key)):
            refused = self._on_all(needs)
            if refused is not None:
                return refused
        for place in places:
            if place.name not in needs.names:
                refused = self._named(place, frame, flexible=flexible, needs=needs)
                if refused is not None:
                    return refused
        changed: bytearray | None = None
        for place in places:
            if place.name in needs.names:
                other = self._topic(head.key, place, frame, flexible=flexible)
                if other is not None:
                    changed = bytearray(frame) if changed is None else changed
                    changed[place.end - len(other) : place.end] = other
        return frame if changed is None else bytes(changed)

    def _named(
        self, place: Place, frame: bytes, *, flexible: bool, needs: Needs
    ) -> ErrorCode | None:
        """Return the error for a group, a transactional id or an expression that the client may not
        use; None if it may."""
        name = text_at(frame, place, flexible=flexible)
        if place.name in EXPRESSIONS.values():
            return self._on_all(needs) if name else None  # an empty one finds nothing
        if name is None:
            return None  # an idempotent producer, or a consumer without a group
        subject = Subject(self._client.subject.caller, None, readable(name))
        if place.name in needs.groups:
            return self._whole(Right.CONSUME, subject, _OF_GROUPS)
        return self._whole(Right.PRODUCE, subject, _OF_TRANSACTIONS)

    def _on_cluster(self) -> ErrorCode | None:
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return self._whole(Right.ADMINISTER, self._client.subject, error)

    def _on_all(self, needs: Needs) -> ErrorCode | None:
        """Return the error for a client that lacks the API's right on some topic; None if it has
        the right on all topics."""
        assert needs.topics is not None
        if needs.topics is Right.ADMINISTER:
            return self._on_cluster()
        refused = self._book.forbid_all(needs.topics, self._client.subject)
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if refused is not None else None

    def _whole(self, right: Right, subject: Subject, error: ErrorCode) -> ErrorCode | None:
        return None if self._book.forbid(right, subject) is None else error

    def _topic(self, key: int, place: Place, frame: bytes, *, flexible: bool) -> bytes | None:
        """Return the substitute of a topic that the client may not use; None if it may."""
        right, asks_for_names = NEEDS[key].topics, key == METADATA
        assert right is not None
        by_id = place.name.endswith("TopicId")
        topic = (
            frame[place.start : place.end] if by_id else text_at(frame, place, flexible=flexible)
        )
        if not topic or topic == NONE:
            return None
        name = self._book.name(topic, wanted=not asks_for_names) if by_id else topic
        if name is None and asks_for_names:
            return None  # the response has the name, and is filtered then
        error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else self._denied(right, name)
        if error is None:
            return None
        return (self._substitutes.id if by_id else self._substitutes.name)(topic, error)

    def _denied(self, right: Right, name: bytes) -> ErrorCode | None:
        topic = read_topic(readable(name))
        if topic is None:
            return None  # brokers refuse it
        refused = self._book.forbid(right, self._client.subject.about(topic))
        if isinstance(refused, Undecided):
            return ErrorCode.LEADER_NOT_AVAILABLE
        return of_topic(refused.refusal) if isinstance(refused, Denial) else None


@cache
def _wanted(key: int) -> frozenset[str]:
    needs = NEEDS[key]
    expression = (EXPRESSIONS[key],) if key in EXPRESSIONS else ()
    return frozenset((*needs.names, *needs.groups, *needs.transactions, *expression))


def _names_none(path: str, places: Iterable[Place]) -> bool:
    return not any(place.name.startswith(f"{path}/") for place in places)


_OF_GROUPS = ErrorCode.GROUP_AUTHORIZATION_FAILED
_OF_TRANSACTIONS = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
