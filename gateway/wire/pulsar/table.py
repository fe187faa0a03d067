"""The commands that the gateway reads, as docs/protocols/states.md lists them.

All other known commands pass unread. `make metrics` writes the page from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from gateway.wire.contract import Direction, Effects
from gateway.wire.pulsar import addresses
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.incarnations import Incarnations
from gateway.wire.pulsar.rights import LIST_REQUESTS
from gateway.wire.pulsar.rows import Commands, Decide, Row, Stops
from gateway.wire.pulsar.session import PulsarSession


def _parties(event: Callable[[Incarnations, BaseCommand, bytes, float], Effects]) -> Decide:
    """Return the `Decide` of a command that concerns producers and consumers alone."""

    def decide(session: PulsarSession, command: BaseCommand, frame: bytes, now: float) -> Effects:
        return event(session.incarnations, command, frame, now)

    return decide


def _partitioned_topic(command: BaseCommand) -> tuple[str, ...]:
    return (command.partitionMetadata.topic,)


ALWAYS, LIMITED, ASKING, COUNTED = Stops.ALWAYS, Stops.LIMITED, Stops.ASKING, Stops.COUNTED
BROKER, CLIENT = Direction.TO_BROKER, Direction.TO_CLIENT

_ONLY_CHECKED = (
    *(Kind.GET_SCHEMA, Kind.GET_OR_CREATE_SCHEMA),
    *(Kind.END_TXN_ON_PARTITION, Kind.END_TXN_ON_SUBSCRIPTION),
    *(Kind.SCALABLE_TOPIC_LOOKUP, Kind.SCALABLE_TOPIC_SUBSCRIBE),
)
"""Commands that go on as they came if a client has the right; see `rights`."""

ROWS = (
    # A second CONNECT, and a command that only brokers send.
    Row(BROKER, Kind.CONNECT, ALWAYS, PulsarSession.second_connect),
    Row(BROKER, Kind.MESSAGE, ALWAYS, PulsarSession.wrong_way),
    # Producers and consumers.
    Row(
        BROKER,
        Kind.PRODUCER,
        ALWAYS,
        _parties(Incarnations.producer),
        names=attrgetter("producer.topic", "producer.producer_name"),
    ),
    Row(
        BROKER,
        Kind.SUBSCRIBE,
        ALWAYS,
        _parties(Incarnations.subscribe),
        names=attrgetter("subscribe.topic", "subscribe.subscription", "subscribe.consumer_name"),
    ),
    Row(BROKER, Kind.SEND, COUNTED, _parties(Incarnations.send)),
    Row(BROKER, Kind.FLOW, ASKING, _parties(Incarnations.flow)),
    Row(BROKER, Kind.UNSUBSCRIBE, ALWAYS, _parties(Incarnations.unsubscribe)),
    Row(BROKER, Kind.CLOSE_PRODUCER, ALWAYS, _parties(Incarnations.close_producer)),
    Row(BROKER, Kind.CLOSE_CONSUMER, ALWAYS, _parties(Incarnations.close_consumer)),
    # Lookups.
    Row(
        BROKER,
        Kind.LOOKUP,
        ALWAYS,
        PulsarSession.lookup,
        names=attrgetter("lookupTopic.topic", "lookupTopic.advertised_listener_name"),
    ),
    Row(BROKER, Kind.PARTITIONED_METADATA, LIMITED, names=_partitioned_topic),
    # Whatever else names topics, whose rights are checked.
    *(Row(BROKER, kind, LIMITED) for kind in _ONLY_CHECKED),
    # Requests for lists of topics, and the lists.
    *(Row(BROKER, kind, ALWAYS, PulsarSession.list_topics) for kind in map(Kind, LIST_REQUESTS)),
    *(
        Row(CLIENT, kind, LIMITED, decide_long=PulsarSession.listed)
        for kind in (
            Kind.GET_TOPICS_OF_NAMESPACE_RESPONSE,
            Kind.WATCH_TOPIC_LIST_SUCCESS,
            Kind.WATCH_TOPIC_UPDATE,
        )
    ),
    # Identity, transactions.
    Row(BROKER, Kind.AUTH_RESPONSE, ALWAYS, PulsarSession.auth_response),
    Row(BROKER, Kind.NEW_TXN, ALWAYS, PulsarSession.begin_transaction),
    Row(BROKER, Kind.ADD_PARTITION_TO_TXN, ALWAYS, PulsarSession.extend_transaction),
    Row(BROKER, Kind.ADD_SUBSCRIPTION_TO_TXN, ALWAYS, PulsarSession.extend_transaction),
    Row(BROKER, Kind.END_TXN, ALWAYS, PulsarSession.end_transaction),
    # A second CONNECTED, and a command that only clients send.
    Row(CLIENT, Kind.CONNECTED, ALWAYS, PulsarSession.second_connected),
    Row(CLIENT, Kind.SEND, ALWAYS, PulsarSession.wrong_way),
    # Producers and consumers.
    Row(CLIENT, Kind.PRODUCER_SUCCESS, ALWAYS, _parties(Incarnations.producer_success)),
    Row(CLIENT, Kind.SUCCESS, ALWAYS, _parties(Incarnations.success)),
    Row(CLIENT, Kind.ERROR, ALWAYS, PulsarSession.error, text=("error", "message")),
    Row(CLIENT, Kind.MESSAGE, COUNTED),
    Row(CLIENT, Kind.SEND_RECEIPT, COUNTED),
    Row(
        CLIENT,
        Kind.SEND_ERROR,
        ALWAYS,
        _parties(Incarnations.send_error),
        text=("send_error", "message"),
    ),
    Row(
        CLIENT,
        Kind.CLOSE_PRODUCER,
        ALWAYS,
        _parties(Incarnations.producer_closed),
        addresses=addresses.close_producer,
    ),
    Row(
        CLIENT,
        Kind.CLOSE_CONSUMER,
        ALWAYS,
        _parties(Incarnations.consumer_closed),
        addresses=addresses.close_consumer,
    ),
    Row(CLIENT, Kind.TOPIC_MIGRATED, ALWAYS, PulsarSession.migrated),
    Row(
        CLIENT,
        Kind.CONSUMER_STATS_RESPONSE,
        ALWAYS,
        addresses=addresses.consumer_stats,
        text=("consumerStatsResponse", "error_message"),
    ),
    Row(CLIENT, Kind.ACK_RESPONSE, ALWAYS, text=("ackResponse", "message")),
    # Lookups.
    Row(
        CLIENT,
        Kind.LOOKUP_RESPONSE,
        ALWAYS,
        PulsarSession.lookup_response,
        text=("lookupTopicResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.PARTITIONED_METADATA_RESPONSE,
        ALWAYS,
        text=("partitionMetadataResponse", "message"),
    ),
    # Identity, schemas.
    Row(CLIENT, Kind.AUTH_CHALLENGE, ALWAYS, PulsarSession.auth_challenge),
    Row(CLIENT, Kind.GET_SCHEMA_RESPONSE, ALWAYS, text=("getSchemaResponse", "error_message")),
    Row(
        CLIENT,
        Kind.GET_OR_CREATE_SCHEMA_RESPONSE,
        ALWAYS,
        text=("getOrCreateSchemaResponse", "error_message"),
    ),
    # Transactions.
    Row(
        CLIENT,
        Kind.NEW_TXN_RESPONSE,
        ALWAYS,
        PulsarSession.transaction_began,
        text=("newTxnResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.ADD_PARTITION_TO_TXN_RESPONSE,
        ALWAYS,
        text=("addPartitionToTxnResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        ALWAYS,
        text=("addSubscriptionToTxnResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.END_TXN_RESPONSE,
        ALWAYS,
        PulsarSession.transaction_ended,
        text=("endTxnResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.END_TXN_ON_PARTITION_RESPONSE,
        ALWAYS,
        text=("endTxnOnPartitionResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.END_TXN_ON_SUBSCRIPTION_RESPONSE,
        ALWAYS,
        text=("endTxnOnSubscriptionResponse", "message"),
    ),
    Row(
        CLIENT, Kind.TC_CLIENT_CONNECT_RESPONSE, ALWAYS, text=("tcClientConnectResponse", "message")
    ),
    Row(
        CLIENT,
        Kind.WATCH_TC_ASSIGNMENTS_UPDATE,
        ALWAYS,
        addresses=addresses.coordinators,
        text=("watchTcAssignmentsUpdate", "message"),
    ),
    # Scalable topics, of 5.0.
    Row(
        CLIENT,
        Kind.SCALABLE_TOPIC_UPDATE,
        ALWAYS,
        addresses=addresses.scalable_topic,
        text=("scalableTopicUpdate", "message"),
    ),
    Row(
        CLIENT,
        Kind.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
        ALWAYS,
        text=("scalableTopicSubscribeResponse", "message"),
    ),
    Row(
        CLIENT,
        Kind.WATCH_SCALABLE_TOPICS_UPDATE,
        ALWAYS,
        text=("watchScalableTopicsUpdate", "message"),
        decide_long=PulsarSession.listed,
    ),
)

COMMANDS = Commands(ROWS)
"""Shared by all listeners."""
