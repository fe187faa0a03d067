"""Of each field happens what the table says."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from gateway.wire.account import Right
from gateway.wire.contract import Credential, Direction, Drop, Forward, Inject, Replace
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.commands import encode, message_of
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.fields import (
    RIGHTS,
    TO_BROKER,
    TO_CLIENT,
    Act,
    Place,
    kinds_with,
    places,
)
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.transactions import NO_METHOD

from .frames import TOPIC, read
from .script import VERIFY, Play
from .services import BROKER_1, SEALED_1, URL_1
from .test_rights import SECRET, VISIBLE, guarded


def cases(direction: Direction, *acts: Act) -> pytest.MarkDecorator:
    """Return a parametrization by each field to which one of these acts happens."""
    found = [
        pytest.param(kind, place, id=f"{kind.name} {'.'.join((*names(place), place.name))}")
        for kind in kinds_with(direction, *acts)
        for place in places(kind, direction, *acts)
    ]
    return pytest.mark.parametrize(("kind", "place"), found)


def names(place: Place) -> list[str]:
    return [step.name for step in place.path]


LEAST = {"topic": TOPIC, "broker_url": ""}
"""Values of required texts that may not be just any text."""


def fill(message: Any) -> Any:
    """Give all required fields of a message a value; topics get one that may be used."""
    of: Descriptor = message.DESCRIPTOR
    for field in of.fields:
        if field.is_required and not message.HasField(field.name):
            if field.message_type is not None:
                fill(getattr(message, field.name)).SetInParent()
            elif field.type == field.TYPE_STRING:
                setattr(message, field.name, LEAST.get(field.name, "x"))
            elif field.type == field.TYPE_BYTES:
                setattr(message, field.name, b"x")
            elif field.enum_type is not None:
                setattr(message, field.name, field.enum_type.values[0].number)
            else:
                setattr(message, field.name, 1)
    return message


def command(kind: Kind, place: Place, *values: Any) -> bytes:
    """Return a frame in which a field has these values: as many as there are in a list, or in a
    list of messages with the field."""
    made = BaseCommand(type=kind.value)  # type: ignore[arg-type]
    message = message_of(kind, made)
    message.SetInParent()
    inner = [fill(message)]
    for step in place.path:
        parent = inner[0]
        value = getattr(parent, step.name)
        if step.is_repeated:
            inner = [fill(value.add()) for _ in values]
        else:
            value.SetInParent()
            inner = [fill(value)]
    if place.field.is_repeated:
        getattr(inner[0], place.name).extend(values)
    else:
        for part, value in zip(inner, values, strict=False):
            setattr(part, place.name, value)
    return encode(made)


def values(kind: Kind, place: Place, frame: bytes) -> list[Any]:
    """Return the values that a field has in a frame."""
    found: list[Any] = []
    for part in place.parts(message_of(kind, read(frame))):
        value = getattr(part, place.name)
        found += value if place.field.is_repeated else [value] if part.HasField(place.name) else []
    return found


def passed(play: Play, direction: Direction, frame: bytes) -> bytes:
    """Return the frame that goes on in place of a frame; an empty one if none does."""
    effects = (play.client if direction is TO_BROKER else play.broker)(frame).effects
    if effects is None or Forward() in effects:
        return frame
    return next((effect.data for effect in effects if isinstance(effect, Replace)), b"")


# -- to brokers --------------------------------------------------------------------------------


@cases(TO_BROKER, Act.TOPIC)
def test_a_topic_needs_the_right_of_the_command(kind: Kind, place: Place) -> None:
    frame = command(kind, place, SECRET)
    assert passed(guarded((RIGHTS[kind], SECRET)), TO_BROKER, frame) == b""
    others = ((right, SECRET) for right in Right if right is not RIGHTS[kind])
    assert values(kind, place, passed(guarded(*others), TO_BROKER, frame)) == [SECRET]


@cases(TO_BROKER, Act.TOPIC)
def test_each_topic_of_several_needs_the_right(kind: Kind, place: Place) -> None:
    frame = command(kind, place, TOPIC, SECRET)
    if len(values(kind, place, frame)) > 1:
        assert passed(guarded((RIGHTS[kind], SECRET)), TO_BROKER, frame) == b""


@cases(TO_BROKER, Act.SUBSCRIPTION)
def test_a_right_on_a_topic_is_one_to_the_subscription(kind: Kind, place: Place) -> None:
    play = guarded()
    asked: list[tuple[Right, str | None]] = []
    play.services.forbid = lambda right, subject: asked.append(  # type: ignore[method-assign]
        (right, subject.subscription)
    )
    passed(play, TO_BROKER, command(kind, place, "mine"))
    assert asked == [(RIGHTS[kind], "mine")]


@cases(TO_BROKER, Act.FIRST_SUBSCRIPTION)
def test_a_first_subscription_needs_the_right_to_consume(kind: Kind, place: Place) -> None:
    play = guarded((Right.CONSUME, TOPIC))
    assert passed(play, TO_BROKER, command(kind, place, "mine")) == b""
    assert passed(play, TO_BROKER, command(kind, place)) != b""


@cases(TO_BROKER, Act.NAMESPACE)
def test_a_namespace_of_brokers_is_refused(kind: Kind, place: Place) -> None:
    assert passed(guarded(), TO_BROKER, command(kind, place, "pulsar/system")) == b""
    assert passed(guarded(), TO_BROKER, command(kind, place, "public/default")) != b""


@cases(TO_BROKER, Act.EXPRESSION)
def test_an_expression_that_may_occupy_a_broker_is_refused_where_rights_are_needed(
    kind: Kind, place: Place
) -> None:
    play = guarded()
    longest = play.listener.bounds.names
    for pattern in (r".*pub((a+)+)b\2?", "(?!a)b", "a" * (longest + 1)):
        frame = command(kind, place, pattern)
        drop, told = play.client(frame).effects or ()
        assert isinstance(told, Inject)
        no = read(told.data).error
        assert (drop, no.error) == (Drop(), ServerError.InvalidTopicName)
        assert no.message.startswith("a pattern of topics may have")
        assert passed(Play(), TO_BROKER, frame) == frame
    for pattern in ("persistent://public/default/.*", "a" * longest):
        assert values(kind, place, passed(guarded(), TO_BROKER, command(kind, place, pattern)))


@cases(TO_BROKER, Act.HASH, Act.CLAIM)
def test_a_hash_and_a_claim_are_removed_where_rights_are_needed(kind: Kind, place: Place) -> None:
    frame = command(kind, place, "told")
    assert values(kind, place, passed(guarded(), TO_BROKER, frame)) == []
    assert values(kind, place, passed(Play(), TO_BROKER, frame)) == ["told"]


@cases(TO_BROKER, Act.TRANSACTION)
def test_a_transaction_of_nobody_is_refused(kind: Kind, place: Place) -> None:
    play = Play(VERIFY)
    play.services.own = Credential(NO_METHOD, b"")
    frame = command(kind, place, 1)
    assert passed(play, TO_BROKER, frame) == b""
    assert passed(Play(), TO_BROKER, frame) == frame


@cases(TO_BROKER, Act.NAME, Act.TOPIC, Act.SUBSCRIPTION, Act.FIRST_SUBSCRIPTION)
def test_a_name_has_a_bound(kind: Kind, place: Place) -> None:
    bounds = Bounds(names=64)
    longest = f"persistent://public/default/{36 * 'x'}"
    play = guarded(bounds=bounds)
    assert passed(play, TO_BROKER, command(kind, place, longest)) != b""
    assert passed(play, TO_BROKER, command(kind, place, longest + "x")) == b""


# -- to clients --------------------------------------------------------------------------------


@cases(TO_CLIENT, Act.FILTERED)
def test_a_list_loses_hidden_topics(kind: Kind, place: Place) -> None:
    play = guarded((Right.LOOKUP, SECRET))
    frame = command(kind, place, VISIBLE[0], SECRET, VISIBLE[1])
    assert values(kind, place, passed(play, TO_CLIENT, frame)) == VISIBLE[:2]


@cases(TO_CLIENT, Act.HASH)
def test_a_list_loses_its_hash(kind: Kind, place: Place) -> None:
    (listing, *_) = places(kind, TO_CLIENT, Act.FILTERED)
    made = read(command(kind, listing, VISIBLE[0]))
    setattr(message_of(kind, made), place.name, "told")
    seen = values(kind, place, passed(guarded(), TO_CLIENT, encode(made)))
    assert not any(seen)


@cases(TO_CLIENT, Act.TEXT)
def test_a_text_loses_addresses(kind: Kind, place: Place) -> None:
    play = Play(limited=True)
    seen = passed(play, TO_CLIENT, command(kind, place, f"not by {BROKER_1}"))
    assert values(kind, place, seen) in (["not by broker"], [])


@cases(TO_CLIENT, Act.ADDRESS)
def test_an_address_becomes_a_sealed_name(kind: Kind, place: Place) -> None:
    seen = passed(Play(), TO_CLIENT, command(kind, place, URL_1))
    assert values(kind, place, seen) == [SEALED_1]


@cases(TO_CLIENT, Act.LEADS)
def test_who_is_not_led_on_sees_no_address(kind: Kind, place: Place) -> None:
    if place.field.type == place.field.TYPE_STRING:
        seen = passed(Play(), TO_CLIENT, command(kind, place, URL_1))
        assert BROKER_1.host.encode() not in seen


@cases(TO_CLIENT, Act.REMOVED)
def test_what_shows_the_gateways_inside_is_removed(kind: Kind, place: Place) -> None:
    assert values(kind, place, passed(Play(), TO_CLIENT, command(kind, place, "/10.0.0.7:1"))) == []


# -- both --------------------------------------------------------------------------------------

ENDS = {Kind.CONNECT, Kind.CONNECTED, Kind.AUTH_CHALLENGE, Kind.AUTH_RESPONSE}
"""What is decided when a connection begins, or by the listener's mode."""

WITHOUT_PRODUCER = {Kind.SEND, Kind.FLOW, Kind.TOPIC_MIGRATED}
"""Dropped without a producer or a consumer."""


@pytest.mark.parametrize("direction", Direction)
def test_what_passes_goes_on_as_it_came(direction: Direction) -> None:
    passing = [
        (kind, place)
        for kind in kinds_with(direction, Act.PASSED)
        if kind not in ENDS | WITHOUT_PRODUCER
        for place in places(kind, direction, Act.PASSED)
        if place.field.type == place.field.TYPE_STRING and not place.field.is_repeated
    ]
    assert len(passing) > 3
    for kind, place in passing:
        play = guarded()
        seen = passed(play, direction, command(kind, place, "told"))
        assert values(kind, place, seen) == ["told"], f"{kind.name} {place.name}"
