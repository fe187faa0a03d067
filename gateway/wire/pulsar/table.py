"""The commands that the gateway reads, as docs/protocols/states.md lists them.

All other known commands pass unread. What happens to their fields is in `fields`. `make metrics`
writes the page from this table.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.wire.contract import Direction, Effects
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.fields import RIGHTS, Act, kinds_with
from gateway.wire.pulsar.frames import LISTS, Kind
from gateway.wire.pulsar.incarnations import Incarnations
from gateway.wire.pulsar.rights import LIST_REQUESTS
from gateway.wire.pulsar.rows import Commands, Decide, Row, Stops
from gateway.wire.pulsar.session import PulsarSession


def _parties(event: Callable[[Incarnations, BaseCommand, bytes, float], Effects]) -> Decide:
    """Return the `Decide` of a command that concerns producers and consumers alone."""

    def decide(session: PulsarSession, command: BaseCommand, frame: bytes, now: float) -> Effects:
        return event(session.incarnations, command, frame, now)

    return decide


ALWAYS, LIMITED, ASKING, COUNTED = Stops.ALWAYS, Stops.LIMITED, Stops.ASKING, Stops.COUNTED
BROKER, CLIENT = Direction.TO_BROKER, Direction.TO_CLIENT

_DECIDED = (
    # A second CONNECT, and a command that only brokers send.
    Row(BROKER, Kind.CONNECT, ALWAYS, PulsarSession.second_connect),
    Row(BROKER, Kind.MESSAGE, ALWAYS, PulsarSession.wrong_way),
    # Producers and consumers.
    Row(BROKER, Kind.PRODUCER, ALWAYS, _parties(Incarnations.producer)),
    Row(BROKER, Kind.SUBSCRIBE, ALWAYS, _parties(Incarnations.subscribe)),
    Row(BROKER, Kind.SEND, COUNTED, _parties(Incarnations.send)),
    Row(BROKER, Kind.FLOW, ASKING, _parties(Incarnations.flow)),
    Row(BROKER, Kind.UNSUBSCRIBE, ALWAYS, _parties(Incarnations.unsubscribe)),
    Row(BROKER, Kind.CLOSE_PRODUCER, ALWAYS, _parties(Incarnations.close_producer)),
    Row(BROKER, Kind.CLOSE_CONSUMER, ALWAYS, _parties(Incarnations.close_consumer)),
    # Lookups.
    Row(BROKER, Kind.LOOKUP, ALWAYS, PulsarSession.lookup),
    # Requests for lists of topics, and the lists.
    *(Row(BROKER, kind, ALWAYS, PulsarSession.list_topics) for kind in LIST_REQUESTS),
    *(
        Row(CLIENT, kind, LIMITED, decide_long=PulsarSession.listed)
        for kind in sorted(LISTS - {Kind.WATCH_SCALABLE_TOPICS_UPDATE})
    ),
    Row(CLIENT, Kind.WATCH_SCALABLE_TOPICS_UPDATE, ALWAYS, decide_long=PulsarSession.listed),
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
    Row(CLIENT, Kind.ERROR, ALWAYS, PulsarSession.error),
    Row(CLIENT, Kind.MESSAGE, COUNTED),
    Row(CLIENT, Kind.SEND_RECEIPT, COUNTED),
    Row(CLIENT, Kind.SEND_ERROR, ALWAYS, _parties(Incarnations.send_error)),
    Row(CLIENT, Kind.CLOSE_PRODUCER, ALWAYS, _parties(Incarnations.producer_closed)),
    Row(CLIENT, Kind.CLOSE_CONSUMER, ALWAYS, _parties(Incarnations.consumer_closed)),
    Row(CLIENT, Kind.TOPIC_MIGRATED, ALWAYS, PulsarSession.migrated),
    # Lookups, identity, transactions.
    Row(CLIENT, Kind.LOOKUP_RESPONSE, ALWAYS, PulsarSession.lookup_response),
    Row(CLIENT, Kind.AUTH_CHALLENGE, ALWAYS, PulsarSession.auth_challenge),
    Row(CLIENT, Kind.NEW_TXN_RESPONSE, ALWAYS, PulsarSession.transaction_began),
    Row(CLIENT, Kind.END_TXN_RESPONSE, ALWAYS, PulsarSession.transaction_ended),
)
"""Commands that have a function, or are counted."""

_CHECKED = tuple(Row(BROKER, Kind(kind), LIMITED) for kind in RIGHTS)
"""Commands that go on as they came if the client has the right."""

_REWRITTEN = tuple(
    Row(CLIENT, kind, ALWAYS) for kind in kinds_with(CLIENT, Act.ADDRESS, Act.TEXT, Act.REMOVED)
)
"""Commands that lose addresses of brokers."""

COMMANDS = Commands((*_CHECKED, *_REWRITTEN, *_DECIDED))
"""Shared by all listeners."""
