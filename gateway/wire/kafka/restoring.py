"""Topics in answers: those with a substitute get their names and errors back, and those that a
client may not know of are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.walk import Found, Place, plan, splice, text_at, unsigned

_ID, _ERROR, _TOPIC = "TopicId", "ErrorCode", "topicName"


class Element(NamedTuple):
    """One topic of an answer: its place, the places of its name and id, and of its errors."""

    place: Place
    names: tuple[Place, ...]
    errors: tuple[Place, ...]


def restored(
    schema: Schema, version: int, frame: bytes, start: int, substitutes: Substitutes
) -> bytes:
    """Return an answer whose body begins at `start`, in which topics have their own names, and each
    that had a substitute has the error for which it got one. Raises `PeerError` if it is torn."""
    flexible = version >= schema.flexible
    changed: bytearray | None = None
    for element in _elements(schema, version, frame, start)[0]:
        for place in element.names:
            other = told(frame, place, flexible=flexible)
            original = substitutes.original(other)
            if original is not None:
                changed = bytearray(frame) if changed is None else changed
                changed[place.end - len(other) : place.end] = original.topic
                for error in element.errors:
                    changed[error.start : error.end] = original.error.to_bytes(2)
    return frame if changed is None else bytes(changed)


def without(
    schema: Schema, version: int, frame: bytes, start: int, hidden: Callable[[bytes], bool]
) -> bytes:
    """Return an answer without the topics whose names are hidden. Raises `PeerError` if it is
    torn."""
    flexible = version >= schema.flexible
    elements, found = _elements(schema, version, frame, start)
    gone = [
        element
        for element in elements
        if any(
            not place.name.endswith(_ID) and hidden(told(frame, place, flexible=flexible))
            for place in element.names
        )
    ]
    if not gone:
        return frame
    (number,) = [it for it in found.places if it.name.endswith("#")]
    left = len(elements) - len(gone)
    count = unsigned(left + 1) if flexible else left.to_bytes(4)
    return splice(frame, found, [(number, count), *((it.place, b"") for it in gone)])


def told(frame: bytes, place: Place, *, flexible: bool) -> bytes:
    """Return a topic as a frame names it; empty if it does not."""
    if place.name.endswith(_ID):
        return frame[place.start : place.end]
    return text_at(frame, place, flexible=flexible) or b""


def _elements(
    schema: Schema, version: int, frame: bytes, start: int
) -> tuple[list[Element], Found]:
    found = plan(schema, version, _wanted(schema, version)).walk(frame, start, len(frame))
    elements: list[Element] = []
    names: list[Place] = []
    errors: list[Place] = []
    for place in found.places:
        if place.name.endswith("[]"):
            elements.append(Element(place, tuple(names), tuple(errors)))
            names, errors = [], []
        elif place.name.endswith(_ERROR):
            errors.append(place)
        elif not place.name.endswith("#"):
            names.append(place)
    return elements, found


@cache
def _wanted(schema: Schema, version: int) -> frozenset[str]:
    """Return what is wanted of each struct that names a topic. Errors outside of these are not."""
    return frozenset(_of_topics(tuple(schema.of(version)), version, ""))


def _of_topics(fields: tuple[Field, ...], version: int, at: str) -> Iterator[str]:
    for it in of(fields, version):
        path = at + it.name
        inner = tuple(of(it.fields, version))
        names = [field.name for field in inner if field.entity == _TOPIC or field.name == _ID]
        if it.kind == "[]{}" and names:
            yield from (path + "[]", path + "#")
            yield from (f"{path}/{name}" for name in names)
            yield from _errors(inner, version, path + "/")
        else:
            yield from _of_topics(inner, version, path + "/")


def _errors(fields: tuple[Field, ...], version: int, at: str) -> Iterator[str]:
    for it in of(fields, version):
        if it.name == _ERROR:
            yield at + it.name
        yield from _errors(it.fields, version, at + it.name + "/")
