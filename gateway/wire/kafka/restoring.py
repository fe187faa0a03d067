"""Changes the topics in responses: substitutes are replaced by the topics that they stand for, with
errors, and topics that the client may not look up are removed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, Protocol

from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.synthetic import ERRORS
from gateway.wire.kafka.walk import Place, Walk, plan, splice, text_at, unsigned

_ID, _TOPIC = "TopicId", "topicName"


class Hidden(Protocol):
    """A function that returns whether a topic must be removed from a response. `by_id`: `topic` is
    an id, not a name."""

    def __call__(self, topic: bytes, *, by_id: bool) -> bool: ...


class Element(NamedTuple):
    """One topic of a response: the place of the whole struct, and the places of the topic's name
    and id, and of its errors."""

    place: Place
    names: tuple[Place, ...]
    errors: tuple[Place, ...]


class Listed(NamedTuple):
    """One list of topics in a response. `number`: the place of the list's length; None if the
    response has a topic that is in no list."""

    number: Place | None
    elements: list[Element]


def restored(
    schema: Schema, version: int, frame: bytes, start: int, substitutes: Substitutes
) -> bytes:
    """Return a response in which each substitute (the name that the broker got in place of a denied
    topic) is replaced by the topic, with the error of its denial; `frame` itself if it has no
    substitute. `start`: where the body begins. Raises `PeerError` if the response is truncated."""
    flexible = version >= schema.flexible
    changed: bytearray | None = None
    lists, _ = _lists(schema, version, frame, start)
    for element in (element for listed in lists for element in listed.elements):
        for place in element.names:
            other = topic_at(frame, place, flexible=flexible)
            original = substitutes.original(other)
            if original is not None:
                changed = bytearray(frame) if changed is None else changed
                changed[place.end - len(other) : place.end] = original.topic
                for error in element.errors:
                    changed[error.start : error.end] = original.error.to_bytes(2)
    return frame if changed is None else bytes(changed)


def without(schema: Schema, version: int, frame: bytes, start: int, hidden: Hidden) -> bytes:
    """Return a response, whose body begins at `start`, with topics removed from its lists.
    `hidden`: returns whether a topic must be removed. Raises `PeerError` if the response is
    truncated."""
    flexible = version >= schema.flexible
    lists, walk = _lists(schema, version, frame, start)
    changes: list[tuple[Place, bytes]] = []
    for number, elements in lists:
        gone = [
            element.place
            for element in elements
            if any(
                hidden(topic_at(frame, name, flexible=flexible), by_id=name.name.endswith(_ID))
                for name in element.names
            )
        ]
        if number is not None and gone:
            left = len(elements) - len(gone)
            changes.append((number, unsigned(left + 1) if flexible else left.to_bytes(4)))
            changes += [(place, b"") for place in gone]
    return splice(frame, walk, changes) if changes else frame


def topic_at(frame: bytes, place: Place, *, flexible: bool) -> bytes:
    """Return the topic name or id that a response has in the field at `place`; empty if it is null.
    `flexible`: the response is of a flexible version."""
    if place.name.endswith(_ID):
        return frame[place.start : place.end]
    return text_at(frame, place, flexible=flexible) or b""


def _lists(schema: Schema, version: int, frame: bytes, start: int) -> tuple[list[Listed], Walk]:
    """Return the lists of topics in a response, and the walk over it. No such list is inside
    another one."""
    walk = plan(schema, version, _wanted(schema, version)).walk(frame, start, len(frame))
    lists: list[Listed] = []
    names: list[Place] = []
    errors: list[Place] = []
    for place in walk.places:
        if place.name.endswith("#"):
            lists.append(Listed(place, []))
        elif place.name.endswith("[]"):
            # An element without fields is a name itself.
            lists[-1].elements.append(Element(place, tuple(names or [place]), tuple(errors)))
            names, errors = [], []
        elif place.name.rpartition("/")[2] in ERRORS:
            errors.append(place)
        else:
            names.append(place)
    alone = [Listed(None, [Element(name, (name,), ())]) for name in names]
    return [*lists, *alone], walk


@cache
def _wanted(schema: Schema, version: int) -> frozenset[str]:
    """Return the paths of names, ids and errors in each struct that names a topic. Errors elsewhere
    are not wanted."""
    return frozenset(_of_topics(tuple(schema.of(version)), version, ""))


def _of_topics(fields: tuple[Field, ...], version: int, at: str) -> Iterator[str]:
    for field in of(fields, version):
        path = at + field.name
        inner = tuple(of(field.fields, version))
        names = [member.name for member in inner if _names_topic(member)]
        if field.kind == "[]string" and field.entity == _TOPIC:
            yield from (path + "[]", path + "#")
        elif field.kind == "{}" and names:
            yield from (f"{path}/{name}" for name in names)
        elif field.kind == "[]{}" and names:
            yield from (path + "[]", path + "#")
            yield from (f"{path}/{name}" for name in names)
            yield from _errors(inner, version, path + "/")
        else:
            yield from _of_topics(inner, version, path + "/")


def _names_topic(field: Field) -> bool:
    return field.kind in ("string", "uuid") and (field.entity == _TOPIC or field.name == _ID)


def _errors(fields: tuple[Field, ...], version: int, at: str) -> Iterator[str]:
    for field in of(fields, version):
        if field.name in ERRORS:
            yield at + field.name
        yield from _errors(field.fields, version, at + field.name + "/")
