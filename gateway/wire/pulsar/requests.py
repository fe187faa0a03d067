"""A client's requests: what each is about, the check of its names, and its refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gateway.wire.account import Action
from gateway.wire.contract import Denial, Direction, Drop, Effects, Inject, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import (
    NO_REQUEST,
    lookup_failed,
    message_of,
    partitions_failed,
    refused,
    text,
)
from gateway.wire.pulsar.fields import TO_BROKER, Act, places_by_kind
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.rights import refusal
from gateway.wire.pulsar.topics import named
from gateway.wire.services import LookupOutcome, Services

Party = tuple[Action, int]
"""What a request is about: a producer or consumer by its id, or a lookup by its request id."""

REQUESTS: dict[int, tuple[Action, str, str]] = {
    Kind.PRODUCER: (Action.PRODUCE, "producer", "producer_id"),
    Kind.SUBSCRIBE: (Action.CONSUME, "subscribe", "consumer_id"),
    Kind.LOOKUP: (Action.LOOKUP, "lookupTopic", "request_id"),
    Kind.PARTITIONED_METADATA: (Action.LOOKUP, "partitionMetadata", "request_id"),
    Kind.GET_TOPICS_OF_NAMESPACE: (Action.LOOKUP, "getTopicsOfNamespace", "request_id"),
    Kind.WATCH_TOPIC_LIST: (Action.LOOKUP, "watchTopicList", "request_id"),
    Kind.WATCH_SCALABLE_TOPICS: (Action.LOOKUP, "watchScalableTopics", "watch_id"),
    Kind.CLOSE_PRODUCER: (Action.PRODUCE, "close_producer", "producer_id"),
    Kind.CLOSE_CONSUMER: (Action.CONSUME, "close_consumer", "consumer_id"),
    Kind.UNSUBSCRIBE: (Action.CONSUME, "unsubscribe", "consumer_id"),
}
"""The action, the message and the id field of the party of each request."""


class ClientRequest(NamedTuple):
    """A decoded request. `message`: the message of the command's type, such as CommandProducer."""

    party: Party
    request_id: int
    message: Any


def read_request(kind: int, command: BaseCommand) -> ClientRequest:
    """Return the request in a command. `kind`: the command's type, one of `REQUESTS`."""
    action, field, id = REQUESTS[kind]
    message = getattr(command, field)
    request_id = getattr(message, "request_id", NO_REQUEST)
    return ClientRequest((action, getattr(message, id)), request_id, message)


_BAD_TOPIC = Denial(
    Refusal.NAME,
    "Invalid topic name: a topic is named <topic>, <tenant>/<namespace>/<topic> or "
    "<domain>://<tenant>/<namespace>/<topic>",
)
"""The text does not repeat the name, which the client knows."""


def names_in(kind: int, command: BaseCommand) -> tuple[str, ...]:
    """Return the names that are checked in a command about one topic, the topic's first; none if
    the command is of another type."""
    fields = _NAMED.get(kind)
    if fields is None:
        return ()
    message = message_of(kind, command)
    return tuple([getattr(message, field) for field in fields])


_NAMED = {
    kind: tuple(place.name for place in found)
    for kind, found in places_by_kind(
        TO_BROKER, Act.TOPIC, Act.SUBSCRIPTION, Act.FIRST_SUBSCRIPTION, Act.NAME
    ).items()
    if not any(place.path or place.field.is_repeated for place in found)
}


def check_names(names: tuple[str, ...], longest: int) -> Denial | None:
    """Return a denial if a request's names are not accepted, else None. The first name is the
    topic's.

    A name is refused if it has more than `longest` characters; the topic's name also if brokers of
    different versions would read it differently. Raises `PeerError` for a name that is not UTF-8,
    which brokers would read as another name.
    """
    for name in names:
        if len(text(name)) > longest:
            return Denial(Refusal.NAME, f"a name of {len(name)} characters, of {longest} at most")
    return _BAD_TOPIC if named(names[0]) is None else None


def refuse(
    kind: int, request: ClientRequest, denial: Denial, services: Services, *, by_error: bool = False
) -> Effects:
    """Return the effects that refuse a request: it is dropped, and the client gets the response by
    which a broker would refuse it.

    `by_error`: this response is an ERROR for a LOOKUP or PARTITIONED_METADATA too.
    """
    if kind == Kind.LOOKUP:
        services.looked_up(LookupOutcome.REFUSED)
    if kind in (Kind.PRODUCER, Kind.SUBSCRIBE):
        return refused(*request.party, request.request_id, denial)
    own = None if by_error else _REFUSALS.get(kind)
    if own is None:
        return refusal(kind, request.message, denial)
    return (Drop(), Inject(Direction.TO_CLIENT, own(request.request_id, denial)))


_REFUSALS: dict[int, Callable[[int, Denial], bytes]] = {
    Kind.LOOKUP: lookup_failed,
    Kind.PARTITIONED_METADATA: partitions_failed,
}
"""The refusals that are not an ERROR."""
