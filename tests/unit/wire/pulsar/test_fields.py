"""The table of what happens to each field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.fields import (
    FIELDS,
    TO_BROKER,
    TO_CLIENT,
    Act,
    Field,
    field_of,
    is_sent,
    kinds_with,
    places,
)
from gateway.wire.pulsar.frames import Kind


class Found(NamedTuple):
    """A field of a command that is sent in a direction."""

    direction: Direction
    kind: Kind
    path: str
    field: FieldDescriptor

    @property
    def entry(self) -> Field | None:
        return field_of(self.direction, self.field)


def walk(of: Descriptor, direction: Direction, kind: Kind, path: str) -> Iterator[Found]:
    """Yield the fields of a message, and of the messages in it whose fields have entries."""
    for field in of.fields:
        found = Found(direction, kind, f"{path}.{field.name}", field)
        if field.message_type is not None and found.entry is None:
            yield from walk(field.message_type, direction, kind, found.path)
        else:
            yield found


ALL = [
    found
    for way in Direction
    for kind in Kind
    if is_sent(kind, way)
    for message in [BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type]
    if message is not None
    for found in walk(message, way, kind, kind.name)
]
IDS = [f"{found.direction.name} {found.path}" for found in ALL]

OF_MESSAGES = {Act.PASSED, Act.IDENTITY}
"""What may happen to a field that is a message."""


@pytest.mark.parametrize("found", ALL, ids=IDS)
def test_each_field_of_each_command_has_an_entry(found: Found) -> None:
    """Add what a new release brings to `FIELDS`."""
    entry, field = found.entry, found.field
    assert entry is not None
    assert bool(entry.why) == (entry.act is Act.PASSED)
    assert field.message_type is None or entry.act in OF_MESSAGES
    may_name_something = field.type in (field.TYPE_STRING, field.TYPE_BYTES)
    is_optional = field.is_repeated or field.message_type is not None or may_name_something
    if found.direction is TO_BROKER and is_optional:
        assert entry.absent, "what do brokers do without it?"


def test_each_entry_is_of_a_field() -> None:
    used: dict[Direction, set[str]] = {way: set() for way in Direction}
    for direction, _, _, field in ALL:
        assert field.containing_type is not None
        name = f"{field.containing_type.name.removeprefix('Command')}.{field.name}"
        used[direction].add(name if name in FIELDS[direction] else field.name)
    assert used == {way: {*FIELDS[way]} for way in Direction}


def test_what_is_looked_for_in_the_message_of_a_command_is_there() -> None:
    own = {
        TO_BROKER: (
            *(Act.FIRST_SUBSCRIPTION, Act.NAMESPACE, Act.CLAIM, Act.HASH, Act.TRANSACTION),
            Act.EXPRESSION,
        ),
        TO_CLIENT: (Act.HASH, Act.TEXT, Act.REMOVED, Act.LEADS),
    }
    for way, acts in own.items():
        for kind in kinds_with(way, *acts):
            assert not any(place.path for place in places(kind, way, *acts))


def test_addresses_come_in_pairs_of_which_the_second_is_with_tls() -> None:
    for kind in kinds_with(TO_CLIENT, Act.ADDRESS):
        found = places(kind, TO_CLIENT, Act.ADDRESS)
        for plain, tls in zip(found[::2], found[1::2], strict=True):
            assert tls.path == plain.path
            assert tls.name in (f"{plain.name}Tls", f"{plain.name}_tls")


def test_a_subscription_stands_beside_its_topic() -> None:
    for kind in kinds_with(TO_BROKER, Act.SUBSCRIPTION):
        (topic,) = places(kind, TO_BROKER, Act.TOPIC)
        (subscription,) = places(kind, TO_BROKER, Act.SUBSCRIPTION)
        assert topic.path == subscription.path


def test_a_command_of_the_other_side_has_no_fields() -> None:
    assert places(Kind.PRODUCER, TO_CLIENT, *Act) == ()
    assert places(Kind.WATCH_TOPIC_UPDATE, TO_BROKER, *Act) == ()
