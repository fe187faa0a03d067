"""Topics in answers: those with a substitute get their names and errors back, and those that a
client may not know of are left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, Protocol

from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.walk import Found, Place, plan, splice, text_at, unsigned

_ID, _ERROR, _TOPIC = "TopicId", "ErrorCode", "topicName"


class Hidden(Protocol):
    """Returns whether a response must not name a topic. `by_id`: `topic` is an id, not a name."""

    def __call__(self, topic: bytes, *, by_id: bool) -> bool: ...


class Element(NamedTuple):
    """One topic of a response: its place, the places of its name and id, and of its errors."""

    place: Place
    names: tuple[Place, ...]
    errors: tuple[Place, ...]


class Listed(NamedTuple):
    """One list of topics of a response: the place of its length, and its elements. `number`: None
    of a topic that stands in no list."""

    number: Place | None
    elements: list[Element]


def restored(
    schema: Schema, version: int, frame: bytes, start: int, substitutes: Substitutes
) -> bytes:
    """Return a response whose body begins at `start`, in which topics have their own names, and
    each that had a substitute has the error for which it got one. Raises `PeerError` if it is
    torn."""
    flexible = version >= schema.flexible
    changed: bytearray | None = None
    lists, _ = _lists(schema, version, frame, start)
    for element in (it for listed in lists for it in listed.elements):
        for place in element.names:
            other = told(frame, place, flexible=flexible)
            original = substitutes.original(other)
            if original is not None:
                changed = bytearray(frame) if changed is None else changed
                changed[place.end - len(other) : place.end] = original.topic
                for error in element.errors:
                    changed[error.start : error.end] = original.error.to_bytes(2)
    return frame if changed is None else bytes(changed)


def without(schema: Schema, version: int, frame: bytes, start: int, hidden: Hidden) -> bytes:
    """Return a response whose lists have no topics that are hidden. Raises `PeerError` if it is
    torn."""
    flexible = version >= schema.flexible
    lists, found = _lists(schema, version, frame, start)
    changes: list[tuple[Place, bytes]] = []
    for number, elements in lists:
        gone = [
            it.place
            for it in elements
            if any(
                hidden(told(frame, name, flexible=flexible), by_id=name.name.endswith(_ID))
                for name in it.names
            )
        ]
        if number is not None and gone:
            left = len(elements) - len(gone)
            changes.append((number, unsigned(left + 1) if flexible else left.to_bytes(4)))
            changes += [(place, b"") for place in gone]
    return splice(frame, found, changes) if changes else frame


def told(frame: bytes, place: Place, *, flexible: bool) -> bytes:
    """Return a topic as a frame names it; empty if it does not."""
    if place.name.endswith(_ID):
        return frame[place.start : place.end]
    return text_at(frame, place, flexible=flexible) or b""


def _lists(schema: Schema, version: int, frame: bytes, start: int) -> tuple[list[Listed], Found]:
    """Return the lists of topics of a response. No such list is in an element of another one."""
    found = plan(schema, version, _wanted(schema, version)).walk(frame, start, len(frame))
    lists: list[Listed] = []
    names: list[Place] = []
    errors: list[Place] = []
    for place in found.places:
        if place.name.endswith("#"):
            lists.append(Listed(place, []))
        elif place.name.endswith("[]"):
            # An element without fields is a name itself.
            lists[-1].elements.append(Element(place, tuple(names or [place]), tuple(errors)))
            names, errors = [], []
        elif place.name.endswith(_ERROR):
            errors.append(place)
        else:
            names.append(place)
    alone = [Listed(None, [Element(it, (it,), ())]) for it in names]
    return [*lists, *alone], found


@cache
def _wanted(schema: Schema, version: int) -> frozenset[str]:
    """Return what is wanted of each struct that names a topic. Errors outside of these are not."""
    return frozenset(_of_topics(tuple(schema.of(version)), version, ""))


def _of_topics(fields: tuple[Field, ...], version: int, at: str) -> Iterator[str]:
    for it in of(fields, version):
        path = at + it.name
        inner = tuple(of(it.fields, version))
        names = [field.name for field in inner if _names_topic(field)]
        if it.kind == "[]string" and it.entity == _TOPIC:
            yield from (path + "[]", path + "#")
        elif it.kind == "{}" and names:
            yield from (f"{path}/{name}" for name in names)
        elif it.kind == "[]{}" and names:
            yield from (path + "[]", path + "#")
            yield from (f"{path}/{name}" for name in names)
            yield from _errors(inner, version, path + "/")
        else:
            yield from _of_topics(inner, version, path + "/")


def _names_topic(it: Field) -> bool:
    return it.kind in ("string", "uuid") and (it.entity == _TOPIC or it.name == _ID)


def _errors(fields: tuple[Field, ...], version: int, at: str) -> Iterator[str]:
    for it in of(fields, version):
        if it.name == _ERROR:
            yield at + it.name
        yield from _errors(it.fields, version, at + it.name + "/")
