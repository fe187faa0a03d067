"""The rights that a client's command needs by the table in `fields`, the synthetic response without
them, and what a client without rights must not learn from lists of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from gateway.wire.account import Right
from gateway.wire.contract import Denial, Direction, Drop, Effects, Inject, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import BROKERS_OWN, CODES, encode, error, message_of, text
from gateway.wire.pulsar.fields import (
    RIGHTS,
    TO_BROKER,
    TO_CLIENT,
    Act,
    Place,
    kinds_with,
    places,
    places_by_kind,
)
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.patterns import is_linear
from gateway.wire.pulsar.topics import is_brokers_own
from gateway.wire.slices import UNITS, Slices

Named = tuple[str, str | None]
"""A topic's name, and the name of its subscription if the command is about one."""


class Need(NamedTuple):
    """The right that a client's command needs on each topic in it. `topics`: returns the topics,
    given the message of the command's type."""

    right: Right
    topics: Callable[[Any], Iterable[Named]]


MOST_NAMED = 100
"""Topics in one command. Clients enlist one topic at a time, and each takes a look at all rules."""


def needs(kind: int) -> tuple[Need, ...]:
    """Return the rights that a client's command of this type needs; none if it needs none."""
    return _NEEDS.get(kind, ())


def _needs(kind: int) -> tuple[Need, ...]:
    (topic,) = places(kind, TO_BROKER, Act.TOPIC)
    beside = [place.name for place in places(kind, TO_BROKER, Act.SUBSCRIPTION)]
    subscription = beside[0] if beside else None
    is_one = not topic.path and not topic.field.is_repeated
    topics = partial(_one, topic.name) if is_one else partial(_several, topic)
    of_topics = Need(RIGHTS[kind], partial(topics, subscription))
    firsts = places(kind, TO_BROKER, Act.FIRST_SUBSCRIPTION)
    of_first = (partial(_first, topic.name, place.name) for place in firsts)
    return (of_topics, *(Need(Right.CONSUME, topics) for topics in of_first))


def _one(topic: str, subscription: str | None, message: Any) -> tuple[Named]:
    return ((getattr(message, topic), subscription and getattr(message, subscription)),)


def _several(place: Place, subscription: str | None, message: Any) -> Iterator[Named]:
    for part in place.parts(message):
        about = subscription and getattr(part, subscription)
        topics = getattr(part, place.name)
        for topic in topics if place.field.is_repeated else (topics,):
            yield topic, about


def _first(topic: str, subscription: str, message: Any) -> tuple[Named, ...]:
    """Return the subscription that a producer creates, if it asks for one."""
    name = getattr(message, subscription)
    return ((getattr(message, topic), name),) if name else ()


_NEEDS = {kind: _needs(kind) for kind in RIGHTS}


_RESPONSES: Mapping[int, Kind] = {
    Kind.NEW_TXN: Kind.NEW_TXN_RESPONSE,
    Kind.END_TXN: Kind.END_TXN_RESPONSE,
    Kind.GET_SCHEMA: Kind.GET_SCHEMA_RESPONSE,
    Kind.GET_OR_CREATE_SCHEMA: Kind.GET_OR_CREATE_SCHEMA_RESPONSE,
    Kind.ADD_PARTITION_TO_TXN: Kind.ADD_PARTITION_TO_TXN_RESPONSE,
    Kind.ADD_SUBSCRIPTION_TO_TXN: Kind.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    Kind.END_TXN_ON_PARTITION: Kind.END_TXN_ON_PARTITION_RESPONSE,
    Kind.END_TXN_ON_SUBSCRIPTION: Kind.END_TXN_ON_SUBSCRIPTION_RESPONSE,
    Kind.SCALABLE_TOPIC_LOOKUP: Kind.SCALABLE_TOPIC_UPDATE,
    Kind.SCALABLE_TOPIC_SUBSCRIBE: Kind.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
    Kind.WATCH_SCALABLE_TOPICS: Kind.WATCH_SCALABLE_TOPICS_UPDATE,
}
"""The responses to requests for which clients do not expect an ERROR."""

_COPIED = ("request_id", "session_id", "watch_id", "txnid_least_bits", "txnid_most_bits")
"""Fields of a request that its response repeats."""


def response(kind: int, command: BaseCommand, denial: Denial, code: Any = None) -> Effects:
    """Return the effects that refuse a request: it is dropped, and the client gets the error
    response that a broker would send. `kind`: the request's type. `code`: the error, if it is
    another one than usual for the kind of denial."""
    return refusal(kind, message_of(kind, command), denial, code)


def refusal(kind: int, request: Any, denial: Denial, code: Any = None) -> Effects:
    """Do the same as `response`. `request`: the message of the command's type."""
    own = _RESPONSES.get(kind)
    if own is None:
        frame = error(request.request_id, denial)
    else:
        refusal = BaseCommand(type=own.value)  # type: ignore[arg-type]
        message = message_of(own, refusal)
        for field in _COPIED:
            if field in request.DESCRIPTOR.fields_by_name and request.HasField(field):
                setattr(message, field, getattr(request, field))
        setattr(message, _code(message), CODES[denial.refusal] if code is None else code)
        (place,) = places(own, TO_CLIENT, Act.TEXT)
        setattr(message, place.name, denial.text)
        frame = encode(refusal)
    return (Drop(), Inject(Direction.TO_CLIENT, frame))


def _code(message: Any) -> str:
    """Return the name of the field for the error code of a response."""
    fields = message.DESCRIPTOR.fields_by_name
    return "error" if "error" in fields else "error_code"


def filtered(
    kind: int, command: BaseCommand, may_see: Callable[[str | bytes], bool]
) -> Slices[bool]:
    """Remove from a broker's list the topics that the client may not see, and the list's hash.
    Return whether the command was changed. `may_see`: gets the name; bytes if it is not UTF-8.

    The hash covers all topics, so a client could use it to confirm guessed topics. If only some
    lists had a hash, that would tell which lists were filtered; so none has. Without a hash,
    clients get the whole list when they ask again.
    """
    message = message_of(kind, command)
    changed = _without_hash(kind, message)
    for place in places(kind, TO_CLIENT, Act.FILTERED):
        for part in place.parts(message):
            topics = getattr(part, place.name)
            if topics and (yield from _keep(topics, may_see)):
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


LIST_REQUESTS = kinds_with(TO_BROKER, Act.NAMESPACE)
"""Requests for lists of the topics of a namespace."""


def remove_claims(kind: int, command: BaseCommand) -> None:
    """Remove, from a client's request, the hash of the list of topics that the client has, and the
    principal for whom it says to ask. By the hash brokers respond whether the list has changed, so
    a client that guesses hashes could learn of topics that it may not see."""
    for place in _CLAIMS.get(kind, ()):
        message_of(kind, command).ClearField(place.name)


_CLAIMS = places_by_kind(TO_BROKER, Act.HASH, Act.CLAIM)


def refuse_list(kind: int, command: BaseCommand) -> Effects | None:
    """Return the effects that refuse a request for a list of the brokers' own topics; None if the
    request is for other topics. The namespaces of brokers' own topics contain brokers' addresses,
    which a client could confirm by such a request. Raises `PeerError` for a name that is not
    UTF-8."""
    (namespace,) = places(kind, TO_BROKER, Act.NAMESPACE)
    if not is_brokers_own(text(getattr(message_of(kind, command), namespace.name))):
        return None
    return response(kind, command, BROKERS_OWN)


def refuse_pattern(kind: int, command: BaseCommand, longest: int) -> Effects | None:
    """Return the effects that refuse a request for a list by a pattern of more than `longest`
    characters, or one that might occupy a broker; None if brokers may match it. Raises `PeerError`
    for a pattern that is not UTF-8."""
    message = message_of(kind, command)
    for place in places(kind, TO_BROKER, Act.EXPRESSION):
        pattern = text(getattr(message, place.name))
        if len(pattern) > longest or not is_linear(pattern):
            return response(kind, command, _BAD_PATTERN)
    return None


_BAD_PATTERN = Denial(
    Refusal.NAME,
    "a pattern of topics may have characters, classes, groups, alternatives and repetitions only, "
    "and must not be long: brokers might take too long to match others",
)


def _without_hash(kind: int, message: Any) -> bool:
    """Remove the hash of a list; return whether it had one."""
    changed = False
    for place in places(kind, TO_CLIENT, Act.HASH):
        if getattr(message, place.name):
            message.ClearField(place.name)
            changed = True
            if place.field.is_required:
                setattr(message, place.name, "")
    return changed
