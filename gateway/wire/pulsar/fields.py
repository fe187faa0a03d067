"""What happens to each field of a command: whether it names, lists, reveals or reaches a topic, a
subscription, a producer, a consumer, a transaction, a client, a principal, a broker or a host.

The code works by this table: `rights` reads it for the topics that need a right, for lists and for
hashes, `requests` for names that have a bound, `addresses` for what brokers tell clients. A test
fails for a field of a command, or of a message in one, that has no entry, and for an entry of no
field; others play each act.

The table has no metadata of messages: it is under the message's checksum, and only counts and times
are read of it (`metadata`).

Sources: PulsarApi.proto up to 5.0, whose fields `tests/unit/wire/pulsar` compares with the schema
here, and `ServerCnx` of brokers 4.0 to 5.0 for what they do without a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.wire.account import Right
from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind

TO_BROKER, TO_CLIENT = Direction

# -- commands ------------------------------------------------------------------------------------

RIGHTS: Mapping[int, Right] = {
    Kind.PRODUCER: Right.PRODUCE,
    Kind.SUBSCRIBE: Right.CONSUME,
    Kind.LOOKUP: Right.LOOKUP,
    Kind.PARTITIONED_METADATA: Right.LOOKUP,
    Kind.GET_SCHEMA: Right.LOOKUP,
    Kind.GET_OR_CREATE_SCHEMA: Right.PRODUCE,
    Kind.ADD_PARTITION_TO_TXN: Right.PRODUCE,
    Kind.ADD_SUBSCRIPTION_TO_TXN: Right.CONSUME,
    # A coordinator sends these to brokers.
    Kind.END_TXN_ON_PARTITION: Right.ADMINISTER,
    Kind.END_TXN_ON_SUBSCRIPTION: Right.ADMINISTER,
    Kind.SCALABLE_TOPIC_LOOKUP: Right.LOOKUP,
    Kind.SCALABLE_TOPIC_SUBSCRIBE: Right.CONSUME,
}
"""The right that a command needs on each topic that it names."""

FREE: Mapping[int, str] = {
    Kind.CONNECT: "begins a connection",
    Kind.AUTH_RESPONSE: "shows a credential",
    **dict.fromkeys((Kind.PING, Kind.PONG), "names nothing"),
    **dict.fromkeys((Kind.SEND, Kind.CLOSE_PRODUCER), "of an open producer"),
    **dict.fromkeys(
        (
            *(Kind.FLOW, Kind.ACK, Kind.REDELIVER_UNACKNOWLEDGED_MESSAGES, Kind.SEEK),
            *(Kind.UNSUBSCRIBE, Kind.GET_LAST_MESSAGE_ID, Kind.CONSUMER_STATS),
            Kind.CLOSE_CONSUMER,
        ),
        "of an open consumer",
    ),
    **dict.fromkeys(
        (Kind.GET_TOPICS_OF_NAMESPACE, Kind.WATCH_TOPIC_LIST, Kind.WATCH_SCALABLE_TOPICS),
        "its responses are filtered",
    ),
    **dict.fromkeys(
        (
            *(Kind.WATCH_TOPIC_LIST_CLOSE, Kind.WATCH_SCALABLE_TOPICS_CLOSE),
            *(Kind.WATCH_TC_ASSIGNMENTS_CLOSE, Kind.SCALABLE_TOPIC_CLOSE),
        ),
        "ends a watch of the connection",
    ),
    **dict.fromkeys((Kind.TC_CLIENT_CONNECT_REQUEST, Kind.WATCH_TC_ASSIGNMENTS), "names no topic"),
    Kind.NEW_TXN: "names no topic; what is enlisted is checked",
    Kind.END_TXN: "of a transaction of the client's own",
}
"""The commands of clients that need no right of their own, and why."""

FROM_BOTH = frozenset({Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER, Kind.PING, Kind.PONG})
"""The commands that clients and brokers send. Brokers send these and all that clients do not."""

# -- fields --------------------------------------------------------------------------------------


class Act(Enum):
    """What happens to a field."""

    TOPIC = "the client needs the command's right"
    SUBSCRIPTION = "the right on the topic is one to this subscription"
    FIRST_SUBSCRIPTION = "the client needs the right to consume by it, too"
    NAMESPACE = "the request is refused for the brokers' own; the response is filtered"
    EXPRESSION = "must be one that brokers match in linear time, where rights are needed"
    TRANSACTION = "must be of the client's principal, where the gateway verifies clients"
    NAME = "has a bound of its length"
    IDENTITY = "shows who the client is: handled by the listener's mode"
    CLAIM = "says for whom a proxy asks: removed where rights are needed"
    HASH = "confirms lists that a client guesses: removed where rights are needed"
    FILTERED = "loses the topics that the client may not look up"
    ADDRESS = "a sealed name stands in place of a broker's address"
    LEADS = "likewise; removed where the client is not led on"
    TEXT = "broker addresses are removed"
    REMOVED = "removed"
    PASSED = "passes"


class Field(NamedTuple):
    """An entry of the table. `absent`: what a broker does without the field, or if it is empty.
    `why`: why the field passes."""

    act: Act
    absent: str = ""
    why: str = ""


def _passed(why: str, *names: str, absent: str = "") -> dict[str, Field]:
    return dict.fromkeys(names, Field(Act.PASSED, absent, why))


def _acts(act: Act, *names: str, absent: str = "") -> dict[str, Field]:
    return dict.fromkeys(names, Field(act, absent))


_OWN = "an id of the connection: brokers know each connection's apart"
_PLACES = "places in a topic whose producer or consumer is open"
_NO_NAME = "names nothing"
_OF_TOPIC = "of the topic in the same command, on which the client needs a right"
_ASKED = "of a topic on which the request needed a right"
_SHOWN = "brokers show it to operators alone"
_REFUSED = "the gateway refuses the command"
_INVALID = "brokers refuse the command"
_NONE = "nothing is named"

_CLAIMED = ("principal", "auth_data", "auth_method")

_SAME: Mapping[str, Field] = {
    **_passed(_OWN, "producer_id", "consumer_id", "request_id", "session_id", "watch_id"),
    **_passed(_OWN, "watcher_id"),
    **_passed(_NO_NAME, "protocol_version", "consumer_epoch"),
    **_passed(
        "says what a peer can do; see `unknown`", "feature_flags", absent="the peer has none"
    ),
    **_passed(_PLACES, "sequence_id", "highest_sequence_id"),
    **_passed(_PLACES, "message_id", absent=_NONE),
    **_passed(_OF_TOPIC, "schema", absent="no schema is set"),
}
"""Fields that are the same in both directions."""

FIELDS: Mapping[Direction, Mapping[str, Field]] = {
    TO_BROKER: {
        **_SAME,
        **_acts(Act.TOPIC, "topic", absent=_REFUSED),
        **_acts(Act.TOPIC, "partitions", absent="the transaction gets no topic"),
        **_acts(Act.TOPIC, "Subscription.topic", absent="as `partitions`, or refused"),
        **_acts(
            Act.SUBSCRIPTION,
            *("Subscribe.subscription", "ScalableTopicSubscribe.subscription"),
            "Subscription.subscription",
            absent=_INVALID,
        ),
        **_acts(Act.FIRST_SUBSCRIPTION, "initial_subscription_name", absent="none is created"),
        **_acts(Act.NAMESPACE, "namespace", absent=_INVALID),
        **_acts(Act.HASH, "topics_hash", "current_hash", absent="the response has the whole list"),
        **_acts(Act.TRANSACTION, "txnid_least_bits", "txnid_most_bits", "scalable"),
        **_acts(Act.NAME, "producer_name", "consumer_name", absent="brokers make one up"),
        **_acts(Act.NAME, "producerName", absent=_NONE),
        **_acts(Act.NAME, "advertised_listener_name", absent="the broker's usual listener"),
        **_acts(
            Act.IDENTITY,
            *("auth_method", "auth_data", "auth_method_name", "response"),
            *("original_principal", "original_auth_data", "original_auth_method", "proxy_version"),
            absent="the client is anonymous, or no proxy",
        ),
        **_acts(
            Act.CLAIM,
            *(f"LookupTopic.original_{what}" for what in _CLAIMED),
            *(f"PartitionedTopicMetadata.original_{what}" for what in _CLAIMED),
            absent="the principal of the connection",
        ),
        **_acts(Act.ADDRESS, "proxy_to_broker_url", absent="any broker"),
        # Transactions that the gateway does not compare with their principal.
        **_passed(
            "reaches only the topic of an open producer, or acknowledges by an open consumer",
            *("Send.txnid_least_bits", "Send.txnid_most_bits"),
            *("Ack.txnid_least_bits", "Ack.txnid_most_bits"),
        ),
        **_passed(
            "the client needs the right to administer the topic",
            *("EndTxnOnPartition.txnid_least_bits", "EndTxnOnPartition.txnid_most_bits"),
            *("EndTxnOnSubscription.txnid_least_bits", "EndTxnOnSubscription.txnid_most_bits"),
            "txnid_least_bits_of_low_watermark",
        ),
        **_passed("of a transaction that begins", "NewTxn.scalable", "txn_ttl_millis"),
        **_passed(_NO_NAME, "TcClientConnectRequest.scalable", "txn_action"),
        **_passed("a coordinator, which each client may use", "tc_id"),
        # Expressions.
        **_acts(Act.EXPRESSION, "topics_pattern", absent="all of the namespace"),
        **_passed("the response is filtered", "property_filters", absent="all of the namespace"),
        **_passed("the response is filtered", "mode"),
        # What is told about the client itself, its topic or its messages.
        **_passed(_SHOWN, "client_version", absent=_INVALID),
        **_passed(_SHOWN, "metadata", "subscription_properties", absent=_NONE),
        **_passed("brokers choose an owner of the topic by it", "properties", absent=_NONE),
        **_passed("the response is filtered", "GetTopicsOfNamespace.properties", absent=_NONE),
        **_passed("of messages that are acknowledged", "Ack.properties", absent=_NONE),
        **_passed(_OF_TOPIC, "schema_version", absent="the latest"),
        **_passed(_OF_TOPIC, "epoch", "topic_epoch", "user_provided_producer_name"),
        **_passed(_OF_TOPIC, "producer_access_mode", "encrypted", "txn_enabled", "authoritative"),
        **_passed(
            "creates the topic in the same command, as brokers allow who may use it",
            *("metadata_auto_creation_enabled", "create_if_missing", "force_topic_creation"),
        ),
        **_passed(_OF_TOPIC, "subType", "priority_level", "durable", "read_compacted"),
        **_passed(_OF_TOPIC, "initialPosition", "replicate_subscription_state", "consumer_type"),
        **_passed(_OF_TOPIC, "keySharedMeta", absent="keys are split automatically"),
        **_passed(_OF_TOPIC, "start_message_id", absent="where `initialPosition` says"),
        **_passed(_OF_TOPIC, "start_message_rollback_duration_sec"),
        **_passed(_PLACES, "message_publish_time", "num_messages", "is_chunk", "marker"),
        **_passed(_PLACES, "message_ids", absent="all unacknowledged ones of the consumer"),
        **_passed(_PLACES, "ack_type", "validation_error", "messagePermits", "force"),
        **_passed(
            "brokers ignore it",
            *("assignedBrokerServiceUrl", "assignedBrokerServiceUrlTls"),
            absent=_NONE,
        ),
    },
    TO_CLIENT: {
        **_SAME,
        **_acts(Act.FILTERED, "topics", "topic", "new_topics", "deleted_topics"),
        **_acts(Act.FILTERED, "added", "removed"),
        **_acts(Act.HASH, "topics_hash"),
        **_acts(Act.ADDRESS, "assignedBrokerServiceUrl", "assignedBrokerServiceUrlTls"),
        **_acts(Act.ADDRESS, "controller_broker_url", "controller_broker_url_tls"),
        **_acts(Act.ADDRESS, "broker_url", "broker_url_tls"),
        **_acts(Act.ADDRESS, "broker_service_url", "broker_service_url_tls"),
        **_acts(Act.LEADS, "brokerServiceUrl", "brokerServiceUrlTls"),
        **_acts(Act.LEADS, "proxy_through_service_url"),
        **_acts(Act.TEXT, "message", "error_message"),
        **_acts(Act.REMOVED, "address"),
        **_acts(Act.IDENTITY, "challenge"),
        **_passed(_NO_NAME, "error", "error_code", "LookupTopicResponse.response", "authoritative"),
        **_passed(_NO_NAME, "PartitionedTopicMetadataResponse.response", "max_message_size"),
        **_passed("a version of brokers", "server_version"),
        **_passed("of the client's own transaction", "txnid_least_bits", "txnid_most_bits"),
        **_passed("a coordinator, which each client may use", "tc_id", "parallelism"),
        **_passed("the same whether topics are hidden or not", "filtered", "changed"),
        **_passed(_ASKED, "partitions", "schema_version", "producer_name", "last_sequence_id"),
        **_passed(_ASKED, "topic_epoch", "producer_ready", "is_active", "resource_id"),
        **_passed(_ASKED, "resource_type", "redelivery_count", "ack_set", "last_message_id"),
        **_passed(_ASKED, "consumer_mark_delete_position"),
        # Statistics of a consumer.
        **_passed("of the client's own consumer", "msgRateOut", "msgThroughputOut", "type"),
        **_passed("of the client's own consumer", "msgRateRedeliver", "consumerName"),
        **_passed("of the client's own consumer", "availablePermits", "unackedMessages"),
        **_passed("of the client's own consumer", "blockedConsumerOnUnackedMsgs", "msgBacklog"),
        **_passed("of the client's own consumer", "connectedSince", "msgRateExpired"),
        **_passed("of the client's own consumer", "messageAckRate"),
        # Scalable topics: segments, and the names that they had as partitions.
        **_passed(_ASKED, "ScalableTopicDAG.epoch", "ScalableTopicDAG.segments", "segment_id"),
        **_passed(_ASKED, "resolved_topic_name", "assignment"),
    },
}
"""By the name of a field, or for one message only by `Message.field`, without `Command`. The entry
of a field that is a message is for all in it."""


class Place(NamedTuple):
    """A field of a command. `path`: the fields that lead to its message."""

    path: tuple[FieldDescriptor, ...]
    field: FieldDescriptor
    act: Act

    @property
    def name(self) -> str:
        """Return the name of the field."""
        return self.field.name

    def parts(self, message: Any) -> list[Any]:
        """Return the messages that have this field, given the message of the command's type."""
        parts = [message]
        for step in self.path:
            inner = (getattr(part, step.name) for part in parts)
            parts = [one for each in inner for one in each] if step.is_repeated else [*inner]
        return parts


def field_of(direction: Direction, field: FieldDescriptor) -> Field | None:
    """Return the entry of a field; None if it has none."""
    of = field.containing_type
    assert of is not None
    fields = FIELDS[direction]
    return fields.get(f"{of.name.removeprefix('Command')}.{field.name}") or fields.get(field.name)


@cache
def places(kind: int, direction: Direction, *acts: Act) -> tuple[Place, ...]:
    """Return the fields of a known type of command to which one of these acts happens; none if
    commands of this type are not sent in this direction."""
    if not is_sent(kind, direction):
        return ()
    of = BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type
    assert of is not None
    return tuple(place for place in _walk(of, direction, ()) if place.act in acts)


def is_sent(kind: int, direction: Direction) -> bool:
    """Return whether a known type of command is sent in a direction."""
    of_clients = kind in RIGHTS or kind in FREE
    return of_clients if direction is TO_BROKER else not of_clients or kind in FROM_BOTH


def _walk(
    of: Descriptor, direction: Direction, path: tuple[FieldDescriptor, ...]
) -> Iterator[Place]:
    for field in of.fields:
        entry = field_of(direction, field)
        if entry is not None:
            yield Place(path, field, entry.act)
        elif field.message_type is not None:
            yield from _walk(field.message_type, direction, (*path, field))


def places_by_kind(direction: Direction, *acts: Act) -> dict[int, tuple[Place, ...]]:
    """Return the same for each type of command that has such fields."""
    found = {kind: places(kind, direction, *acts) for kind in Kind}
    return {kind: of for kind, of in found.items() if of}


def kinds_with(direction: Direction, *acts: Act) -> tuple[Kind, ...]:
    """Return the types of commands that have a field to which one of these acts happens."""
    return tuple(kind for kind in Kind if places(kind, direction, *acts))
