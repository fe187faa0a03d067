"""The right that each command of a client needs, and the synthetic response without that right.

A test holds the table to the schema: each command of a client has a right, or stands among those
that need none, because they name no topic, or a topic that was opened with a right before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gateway.wire.account import Right
from gateway.wire.contract import Denial, Direction, Drop, Effects, Inject
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import BROKERS_OWN, CODES, encode, error, message_of, text
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.topics import is_brokers_own
from gateway.wire.slices import UNITS, Slices

Named = tuple[str, str | None]
"""A topic's name, and the name of its subscription if the command is about one."""


class Need(NamedTuple):
    """The right that a client's command needs on each topic in it. `field`: name of the command's
    message. `topics`: returns the topics in that message."""

    right: Right
    field: str
    topics: Callable[[Any], Iterable[Named]]


def _topic(message: Any) -> Iterator[Named]:
    yield message.topic, None


def _first_subscription(message: Any) -> Iterator[Named]:
    """Yield the subscription that a producer creates, if it asks for one."""
    if message.initial_subscription_name:
        yield message.topic, message.initial_subscription_name


def _subscribed(message: Any) -> Iterator[Named]:
    yield message.topic, message.subscription


def _partitions(message: Any) -> Iterator[Named]:
    return ((name, None) for name in message.partitions)


def _subscriptions(message: Any) -> Iterator[Named]:
    return (
        (subscription.topic, subscription.subscription) for subscription in message.subscription
    )


def _one_subscription(message: Any) -> Iterator[Named]:
    yield message.subscription.topic, message.subscription.subscription


NEEDS: Mapping[int, Need] = {
    Kind.PRODUCER: Need(Right.PRODUCE, "producer", _topic),
    Kind.SUBSCRIBE: Need(Right.CONSUME, "subscribe", _subscribed),
    Kind.LOOKUP: Need(Right.LOOKUP, "lookupTopic", _topic),
    Kind.PARTITIONED_METADATA: Need(Right.LOOKUP, "partitionMetadata", _topic),
    Kind.GET_SCHEMA: Need(Right.LOOKUP, "getSchema", _topic),
    Kind.GET_OR_CREATE_SCHEMA: Need(Right.PRODUCE, "getOrCreateSchema", _topic),
    Kind.ADD_PARTITION_TO_TXN: Need(Right.PRODUCE, "addPartitionToTxn", _partitions),
    Kind.ADD_SUBSCRIPTION_TO_TXN: Need(Right.CONSUME, "addSubscriptionToTxn", _subscriptions),
    # A coordinator sends these to brokers.
    Kind.END_TXN_ON_PARTITION: Need(Right.ADMINISTER, "endTxnOnPartition", _topic),
    Kind.END_TXN_ON_SUBSCRIPTION: Need(Right.ADMINISTER, "endTxnOnSubscription", _one_subscription),
    Kind.SCALABLE_TOPIC_LOOKUP: Need(Right.LOOKUP, "scalableTopicLookup", _topic),
    Kind.SCALABLE_TOPIC_SUBSCRIBE: Need(Right.CONSUME, "scalableTopicSubscribe", _subscribed),
}

ALSO: Mapping[int, Need] = {
    Kind.PRODUCER: Need(Right.CONSUME, "producer", _first_subscription),
}
"""Rights that some commands need beside those in `NEEDS`."""

MOST_NAMED = 100
"""Topics in one command. Clients enlist one topic at a time, and each takes a look at all rules."""


def needs(kind: int) -> Iterator[Need]:
    """Yield each right that a client's command of this type needs; nothing if it needs none."""
    for known in (NEEDS, ALSO):
        if kind in known:
            yield known[kind]


class Listing(NamedTuple):
    """A broker's response that lists topics. `field`: name of the command's message; `lists`: the
    paths of the lists of topics in that message."""

    field: str
    lists: tuple[str, ...]


LISTINGS: Mapping[int, Listing] = {
    Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE: Listing("getTopicsOfNamespaceResponse", ("topics",)),
    Kind.WATCH_TOPIC_LIST_SUCCESS: Listing("watchTopicListSuccess", ("topic",)),
    Kind.WATCH_TOPIC_UPDATE: Listing("watchTopicUpdate", ("new_topics", "deleted_topics")),
    Kind.WATCH_SCALABLE_TOPICS_UPDATE: Listing(
        "watchScalableTopicsUpdate", ("snapshot.topics", "diff.added", "diff.removed")
    ),
}
"""Responses that list topics, from which topics are removed that the client may not look up."""

FREE: Mapping[int, str] = {
    Kind.CONNECT: "begins a connection",
    Kind.AUTH_RESPONSE: "shows a credential",
    Kind.PING: "asks for a PONG",
    Kind.PONG: "answers a PING",
    Kind.SEND: "of an open producer",
    Kind.FLOW: "of an open consumer",
    Kind.ACK: "of an open consumer",
    Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES: "of an open consumer",
    Kind.SEEK: "of an open consumer",
    Kind.UNSUBSCRIBE: "of an open consumer",
    Kind.GET_LAST_MESSAGE_ID: "of an open consumer",
    Kind.CONSUMER_STATS: "of an open consumer",
    Kind.CLOSE_PRODUCER: "of an open producer",
    Kind.CLOSE_CONSUMER: "of an open consumer",
    Kind.GET_TOPICS_OF_NAMESPACE: "its answer is filtered",
    Kind.WATCH_TOPIC_LIST: "its answers are filtered",
    Kind.WATCH_TOPIC_LIST_CLOSE: "ends a watch",
    Kind.WATCH_SCALABLE_TOPICS: "its answers are filtered",
    Kind.WATCH_SCALABLE_TOPICS_CLOSE: "ends a watch",
    Kind.SCALABLE_TOPIC_CLOSE: "ends a session",
    Kind.TC_CLIENT_CONNECT_REQUEST: "names no topic",
    Kind.NEW_TXN: "names no topic; what is enlisted is checked",
    Kind.END_TXN: "of a transaction of the client's own",
    Kind.WATCH_TC_ASSIGNMENTS: "names no topic",
    Kind.WATCH_TC_ASSIGNMENTS_CLOSE: "ends a watch",
}
"""The commands of clients that need no right of their own, and why."""


class _Response(NamedTuple):
    """The type of response to a request. `code`, `text`: its fields for an error."""

    kind: Kind
    field: str
    code: str
    text: str


_ANSWERS: Mapping[int, _Response] = {
    Kind.NEW_TXN: _Response(Kind.NEW_TXN_RESPONSE, "newTxnResponse", "error", "message"),
    Kind.END_TXN: _Response(Kind.END_TXN_RESPONSE, "endTxnResponse", "error", "message"),
    Kind.GET_SCHEMA: _Response(
        Kind.GET_SCHEMA_RESPONSE, "getSchemaResponse", "error_code", "error_message"
    ),
    Kind.GET_OR_CREATE_SCHEMA: _Response(
        Kind.GET_OR_CREATE_SCHEMA_RESPONSE,
        "getOrCreateSchemaResponse",
        "error_code",
        "error_message",
    ),
    Kind.ADD_PARTITION_TO_TXN: _Response(
        Kind.ADD_PARTITION_TO_TXN_RESPONSE, "addPartitionToTxnResponse", "error", "message"
    ),
    Kind.ADD_SUBSCRIPTION_TO_TXN: _Response(
        Kind.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, "addSubscriptionToTxnResponse", "error", "message"
    ),
    Kind.END_TXN_ON_PARTITION: _Response(
        Kind.END_TXN_ON_PARTITION_RESPONSE, "endTxnOnPartitionResponse", "error", "message"
    ),
    Kind.END_TXN_ON_SUBSCRIPTION: _Response(
        Kind.END_TXN_ON_SUBSCRIPTION_RESPONSE,
        "endTxnOnSubscriptionResponse",
        "error",
        "message",
    ),
    Kind.SCALABLE_TOPIC_LOOKUP: _Response(
        Kind.SCALABLE_TOPIC_UPDATE, "scalableTopicUpdate", "error", "message"
    ),
    Kind.SCALABLE_TOPIC_SUBSCRIBE: _Response(
        Kind.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
        "scalableTopicSubscribeResponse",
        "error",
        "message",
    ),
}
"""The responses to requests for which clients do not expect an ERROR."""

_COPIED = ("request_id", "session_id", "txnid_least_bits", "txnid_most_bits")
"""Fields of a request that its response repeats."""


def response(kind: int, command: BaseCommand, denial: Denial, code: Any = None) -> Effects:
    """Return the effects that refuse a request: it is dropped, and the client gets the error
    response that a broker would send. `kind`: the request's type. `code`: the error, if it is
    another one than usual for the kind of denial."""
    request = message_of(kind, command)
    own = _ANSWERS.get(kind)
    if own is None:
        frame = error(request.request_id, denial)
    else:
        type: Any = own.kind.value
        refusal = BaseCommand(type=type)
        message = getattr(refusal, own.field)
        for field in _COPIED:
            if field in request.DESCRIPTOR.fields_by_name and request.HasField(field):
                setattr(message, field, getattr(request, field))
        setattr(message, own.code, CODES[denial.refusal] if code is None else code)
        setattr(message, own.text, denial.text)
        frame = encode(refusal)
    return (Drop(), Inject(Direction.TO_CLIENT, frame))


def filtered(
    kind: int, command: BaseCommand, may_see: Callable[[str | bytes], bool]
) -> Slices[bool]:
    """Remove from a broker's list the topics that the client may not see, and the list's hash.
    Return whether the command was changed. `may_see`: gets the name; bytes if it is not UTF-8.

    The hash covers all topics, so a client could use it to confirm guessed topics. If only some
    lists had a hash, that would tell which lists were filtered; so none has. Without a hash,
    clients get the whole list when they ask again.
    """
    listing = LISTINGS[kind]
    changed = _without_hash(getattr(command, listing.field))
    for path in listing.lists:
        message: Any = getattr(command, listing.field)
        *parents, name = path.split(".")
        if any(not message.HasField(parent) for parent in parents):
            continue
        for parent in parents:
            message = getattr(message, parent)
        topics = getattr(message, name)
        if (yield from _keep(topics, may_see)):
            changed = True
    return changed


def _keep(topics: Any, may_see: Callable[[str | bytes], bool]) -> Slices[bool]:
    """Remove from a list the topics that the client may not see; return whether there were any.
    Topics that stay move forward in the list: another list would take its memory."""
    kept = 0
    for start in range(0, len(topics), UNITS):
        if start:
            yield
        seen = [topic for topic in topics[start : start + UNITS] if may_see(topic)]
        if kept < start or len(seen) < UNITS:
            topics[kept : kept + len(seen)] = seen
        kept += len(seen)
    has_hidden = kept < len(topics)
    del topics[kept:]
    return has_hidden


def is_empty_update(kind: int, command: BaseCommand) -> bool:
    """Return whether a broker's list is an update of a watch and names no topic."""
    if kind == Kind.WATCH_TOPIC_UPDATE:
        update = command.watchTopicUpdate
        return not update.new_topics and not update.deleted_topics
    if kind == Kind.WATCH_SCALABLE_TOPICS_UPDATE:
        event = command.watchScalableTopicsUpdate
        return event.HasField("diff") and not event.diff.added and not event.diff.removed
    return False


class _ListRequest(NamedTuple):
    """A type of request for a listing. `field`: its message; `hash`: the field for the hash of the
    list that the client has."""

    field: str
    hash: str


LIST_REQUESTS: Mapping[int, _ListRequest] = {
    Kind.GET_TOPICS_OF_NAMESPACE: _ListRequest("getTopicsOfNamespace", "topics_hash"),
    Kind.WATCH_TOPIC_LIST: _ListRequest("watchTopicList", "topics_hash"),
    Kind.WATCH_SCALABLE_TOPICS: _ListRequest("watchScalableTopics", "current_hash"),
}
"""Requests for listings of a namespace."""


def ask_for_all(kind: int, command: BaseCommand) -> None:
    """Remove, from a client's request for a list of topics, the hash of the list that the client
    has. By the hash brokers respond whether the list has changed, so a client that guesses hashes
    could learn of topics that it may not see."""
    if kind in LIST_REQUESTS:
        field, hash = LIST_REQUESTS[kind]
        getattr(command, field).ClearField(hash)


def refuse_list(kind: int, command: BaseCommand) -> Effects | None:
    """Return the effects that refuse a request for a list of the brokers' own topics; None if the
    request is for other topics. The namespaces of brokers' own topics contain brokers' addresses,
    which a client could confirm by such a request. Raises `PeerError` for a name that is not
    UTF-8."""
    request = getattr(command, LIST_REQUESTS[kind].field)
    if not is_brokers_own(text(request.namespace)):
        return None
    if kind != Kind.WATCH_SCALABLE_TOPICS:
        frame = error(request.request_id, BROKERS_OWN)
    else:
        refusal = BaseCommand(type=Kind.WATCH_SCALABLE_TOPICS_UPDATE.value)  # type: ignore[arg-type]
        update = refusal.watchScalableTopicsUpdate
        update.watch_id = request.watch_id
        update.error, update.message = CODES[BROKERS_OWN.refusal], BROKERS_OWN.text
        frame = encode(refusal)
    return (Drop(), Inject(Direction.TO_CLIENT, frame))


def _without_hash(message: Any) -> bool:
    """Remove the hash of a listing; return whether it had one."""
    if not getattr(message, "topics_hash", ""):
        return False
    message.ClearField("topics_hash")
    if not message.IsInitialized():  # some must have one
        message.topics_hash = ""
    return True
