"""Finds fields in the body of a frame without decoding the rest.

A *plan* is made once for a schema, a version and the names of the wanted fields. A walk by this
plan steps over all other fields; it takes one step for consecutive numbers, and ends at the last
wanted field. The result is a list of *places*, offsets of the wanted fields in the frame. `splice`
replaces the bytes at some places, and corrects the sizes of the tagged fields around them.

All lengths come from a peer, and none is trusted. The walk raises `PeerError` if a text or an array
would end beyond the frame, if an array has more elements than the remaining bytes have room for, or
if the walk takes too many steps.

Brokers read the content of a known tagged field without regard to the size that the field states;
only unknown tagged fields are skipped by that size. So a tagged field whose content has another
size than stated could be read in two ways. It is a violation of the protocol, even if the field is
not wanted.

Source: the protocol guide of Apache Kafka, and KIP-482 for compact lengths and tagged fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka.schema import Field, Schema, of

SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""By type: the bytes of a number."""


class Place(NamedTuple):
    """The location of a field: `frame[start:end]`, including its length prefix if it has one."""

    name: str
    start: int
    end: int


class Tagged(NamedTuple):
    """The location of a tagged field: `frame[start:end]` is its stated size, `frame[end:until]` its
    content."""

    start: int
    end: int
    until: int


@dataclass(slots=True)
class Walk:
    """The result of a walk over a body. `places`: the wanted fields, in the order of the frame.
    `tagged`: the tagged fields that contain wanted fields, in the order of the frame; an outer
    tagged field is before the ones inside it. `end`: the offset where the walk ended. `left`: the
    steps that the walk may still take."""

    left: int
    places: list[Place] = field(default_factory=list)
    tagged: list[Tagged] = field(default_factory=list)
    end: int = 0

    def step(self) -> None:
        """Count one step. Raises `PeerError` if the walk has taken too many."""
        self.left -= 1
        if self.left < 0:
            raise PeerError("a frame of too many fields")


Frame = bytes | bytearray

Step = Callable[[Frame, int, int, Walk], int]
"""Steps over a part of `frame` at an offset, up to an end, and returns the next offset."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps over a struct of one kind. `least`: the fewest bytes that such a struct has.
    `most`: the most steps that a walk may take."""

    steps: tuple[Step, ...]
    least: int
    most: int = 0

    def walk(self, frame: Frame, start: int, end: int) -> Walk:
        """Return the wanted fields of the body `frame[start:end]`. Raises `PeerError` if the body
        is truncated or malformed."""
        walk = Walk(self.most)
        walk.end = self.over(frame, start, end, walk)
        return walk

    def over(self, frame: Frame, at: int, end: int, walk: Walk) -> int:
        """Step over one struct at offset `at`, and add its wanted fields to `walk`. Return the
        offset behind the struct."""
        for step in self.steps:
            at = step(frame, at, end, walk)
        return at


@cache
def plan(
    schema: Schema, version: int, wanted: frozenset[str] = frozenset(), *, whole: bool = False
) -> Plan:
    """Return the plan that finds the fields with the `wanted` names, in any struct. A path such as
    `Topics/Name` means only the field of that struct. `Topics[]` means each element of an array,
    and `Topics#` the number of its elements. `whole`: the walk goes on to the end of the body, to
    check that it is well-formed, even behind the last wanted field."""
    flexible = version >= schema.flexible
    made = _Made(version, flexible, wanted).struct(schema.fields, "", whole=whole)
    return replace(made, most=schema.steps)


def text_at(frame: Frame, place: Place, *, flexible: bool) -> bytes | None:
    """Return the text of the field at a place; None if the field is null. `flexible`: the message
    is of a flexible version, whose lengths are compact."""
    if flexible:
        length, at = read_unsigned(frame, place.start, place.end)
        return bytes(frame[at : place.end]) if length else None
    at = place.start + 2
    return None if frame[place.start : at] == b"\xff\xff" else bytes(frame[at : place.end])


def as_text(text: bytes, *, flexible: bool) -> bytes:
    """Return the encoded form of a text: its length, then the text. `flexible`: the length is
    compact, as in flexible versions."""
    return (unsigned(len(text) + 1) if flexible else len(text).to_bytes(2, signed=True)) + text


def splice(frame: bytes, walk: Walk, other: Iterable[tuple[Place, bytes]]) -> bytes:
    """Return the frame with the bytes at some places replaced, and with the sizes of the tagged
    fields around these places corrected. `other`: the places, in the order of the frame, each with
    its new bytes. `walk`: the walk that found the places."""
    changes = [(place.start, place.end, data) for place, data in other]
    # Inner tagged fields are first, as their own sizes may change the size around them.
    for tag in reversed(walk.tagged):
        grown = sum(
            len(data) - (end - start)
            for start, end, data in changes
            if tag.end <= start and end <= tag.until
        )
        if grown:
            changes.append((tag.start, tag.end, unsigned(tag.until - tag.end + grown)))
    parts, at = [], 0
    for start, end, data in sorted(changes):
        parts += [frame[at:start], data]
        at = end
    return b"".join([*parts, frame[at:]])


# -- lengths -----------------------------------------------------------------------------------


def unsigned(number: int) -> bytes:
    """Return a number as an unsigned varint."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_unsigned(frame: Frame, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned varint at an offset, of at most 32 bits, and the offset behind it. Raises
    `PeerError` if it is truncated or too large."""
    number = 0
    for shift in range(0, 35, 7):
        if at >= end:
            break
        byte = frame[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> 32:
                break
            return number, at
    raise PeerError("a length that does not end")


def over_tags(frame: Frame, at: int, end: int) -> int:
    """Skip a struct's tagged fields, none of which is wanted, and return the offset behind them.
    `at`: the offset where they begin. Raises `PeerError` if they are truncated."""
    count, at = read_unsigned(frame, at, end)
    if count > end - at:
        raise PeerError(f"{count} tagged fields in a frame that is too short for them")
    for _ in range(count):
        _, at = read_unsigned(frame, at, end)
        size, at = read_unsigned(frame, at, end)
        if size > end - at:
            raise PeerError("a tagged field that is torn")
        at += size
    return at


def _length(size: int, least: int) -> Callable[[Frame, int, int], tuple[int, int]]:
    """Return a function that reads a length of `size` bytes, or a compact one if `size` is 0.
    `least`: -1 if the value may be null, which is read as the length -1."""

    def read(frame: Frame, at: int, end: int) -> tuple[int, int]:
        if not size:
            length, at = read_unsigned(frame, at, end)
            length -= 1
        else:
            until = at + size
            if until > end:
                raise PeerError("a length that is torn")
            length = int.from_bytes(frame[at:until], signed=True)
            at = until
        if length < least:
            raise PeerError(f"a length of {length}")
        return length, at

    return read


# -- making plans ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Made:
    """Makes the plans of one version."""

    version: int
    flexible: bool
    wanted: frozenset[str]

    def struct(self, fields: tuple[Field, ...], at: str, *, whole: bool) -> Plan:
        """Return the plan of a struct. `at`: its path, with a slash behind it. `whole`: the plan
        steps over the struct to its end, since other fields follow."""
        here = [member for member in of(fields, self.version) if not self._is_tagged(member)]
        tagged = [member for member in of(fields, self.version) if self._is_tagged(member)]
        interesting = [self._is_interesting(member, at) for member in here]
        any_tagged = any(self._is_interesting(member, at) for member in tagged)
        if not (whole or any_tagged):
            here = (
                here[: len(interesting) - interesting[::-1].index(True)] if any(interesting) else []
            )
        steps: list[Step] = []
        numbers = least = 0
        for member in here:
            size = SIZES.get(member.kind, 0)
            if size and self._label(member, at) is None:
                numbers += size
            else:
                if numbers:
                    steps.append(_skip(numbers))
                    least += numbers
                    numbers = 0
                step, size = self._field(member, at)
                steps.append(step)
                least += size
        if numbers:
            steps.append(_skip(numbers))
            least += numbers
        if self.flexible and (whole or any_tagged):
            steps.append(self._tags(tagged, at))
            least += 1
        return Plan(tuple(steps), least)

    def _is_tagged(self, field: Field) -> bool:
        return field.tagged <= self.version

    def _label(self, field: Field, at: str) -> str | None:
        """Return the name or path by which a field is wanted; None if it is not wanted."""
        path = at + field.name
        return next((label for label in (path, field.name) if label in self.wanted), None)

    def _is_interesting(self, field: Field, at: str) -> bool:
        path = at + field.name
        if self._label(field, at) is not None or not self.wanted.isdisjoint(
            (path + "[]", path + "#")
        ):
            return True
        inner = of(field.fields, self.version)
        return any(self._is_interesting(member, path + "/") for member in inner)

    def _field(self, field: Field, at: str) -> tuple[Step, int]:
        """Return the step over a field, and the fewest bytes that it takes."""
        step, least = self._value(field, at + field.name)
        label = self._label(field, at)
        return (step, least) if label is None else (_noted(label, step), least)

    def _value(self, field: Field, path: str) -> tuple[Step, int]:
        null = -1 if field.nullable <= self.version else 0
        kind = field.kind.removeprefix("[]")
        if field.kind.startswith("[]"):
            element, least = self._element(field, kind, path)
            read = _length(0 if self.flexible else 4, null)
            number = path + "#" if path + "#" in self.wanted else None
            return _array(read, element, least, number), 1 if self.flexible else 4
        if kind in SIZES:
            return _skip(SIZES[kind]), SIZES[kind]
        if kind == "{}":
            inner = self.struct(field.fields, path + "/", whole=True)
            if null:
                return _optional(inner), 1
            return inner.over, inner.least
        size = 0 if self.flexible else 2 if kind == "string" else 4
        return _text(_length(size, null)), size or 1

    def _element(self, field: Field, kind: str, path: str) -> tuple[Step | None, int]:
        """Return the step over one element of an array, None for numbers, and the fewest bytes of
        an element."""
        wanted = path + "[]" in self.wanted
        if kind in SIZES:
            size = SIZES[kind]
            return (_noted(path + "[]", _skip(size)) if wanted else None), size
        if kind == "{}":
            inner = self.struct(field.fields, path + "/", whole=True)
            return (_noted(path + "[]", inner.over) if wanted else inner.over), inner.least
        size = 0 if self.flexible else 2 if kind == "string" else 4
        step = _text(_length(size, 0))
        return (_noted(path + "[]", step) if wanted else step), size or 1

    def _tags(self, fields: list[Field], path: str) -> Step:
        known = {
            field.tag: (self._field(field, path)[0], self._is_interesting(field, path))
            for field in fields
        }

        def over(frame: Frame, at: int, end: int, walk: Walk) -> int:
            count, at = read_unsigned(frame, at, end)
            for _ in range(count):
                walk.step()
                tag, at = read_unsigned(frame, at, end)
                start = at
                size, at = read_unsigned(frame, at, end)
                until = at + size
                if until > end:
                    raise PeerError("a tagged field that is torn")
                if tag in known:
                    step, is_interesting = known[tag]
                    if is_interesting:
                        walk.tagged.append(Tagged(start, at, until))
                    if step(frame, at, until, walk) != until:
                        raise PeerError("a tagged field of another size than it states")
                at = until
            return at

        return over


def _skip(size: int) -> Step:
    def over(_frame: Frame, at: int, end: int, _walk: Walk) -> int:
        if size > end - at:
            raise PeerError("a frame that is torn")
        return at + size

    return over


def _text(read: Callable[[Frame, int, int], tuple[int, int]]) -> Step:
    def over(frame: Frame, at: int, end: int, _walk: Walk) -> int:
        length, at = read(frame, at, end)
        if length > end - at:
            raise PeerError("a text that is torn")
        return at + max(0, length)

    return over


def _array(
    read: Callable[[Frame, int, int], tuple[int, int]],
    element: Step | None,
    least: int,
    number: str | None,
) -> Step:
    """Return the step over an array. `number`: the name by which its length is wanted, if it is."""

    def over(frame: Frame, at: int, end: int, walk: Walk) -> int:
        start = at
        count, at = read(frame, at, end)
        if number is not None:
            walk.places.append(Place(number, start, at))
        if count * least > end - at:
            raise PeerError(f"an array of {count} in a frame that is too short for them")
        if element is None:
            return at + max(0, count) * least
        for _ in range(count):
            walk.step()
            at = element(frame, at, end, walk)
        return at

    return over


def _optional(inner: Plan) -> Step:
    """Return the step over a struct that may be null, which the byte before it says."""

    def over(frame: Frame, at: int, end: int, walk: Walk) -> int:
        if at >= end:
            raise PeerError("a frame that is torn")
        is_there = frame[at] < 128  # a signed byte: below zero stands for null
        return inner.over(frame, at + 1, end, walk) if is_there else at + 1

    return over


def _noted(name: str, step: Step) -> Step:
    def over(frame: Frame, at: int, end: int, walk: Walk) -> int:
        until = step(frame, at, end, walk)
        walk.places.append(Place(name, at, until))
        return until

    return over
