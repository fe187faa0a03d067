"""Finds fields in the body of a frame, without decoding the rest of it.

A *plan* is made once of a schema, a version and the names of fields that somebody wants. It steps
over what nobody wants: numbers that follow each other in one step, and nothing at all behind the
last wanted field. What it finds are *places*: offsets in the frame. `splice` puts other bytes in
some of them, and changes the sizes of the tagged fields around them.

All lengths come from a peer, and none is trusted. A text or an array ends within the frame, or the
walk raises `PeerError`; an array has as many elements as bytes are left for them, at most; and the
steps of one walk are bounded.

Brokers read a tagged field that they know by what stands in it, whatever size it states, and by its
size only one that they do not know. So a field of another size than it states would be read in two
ways, and is a violation, whether it is wanted or not.

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
"""By type: bytes of a number."""


class Place(NamedTuple):
    """Where a field stands: `frame[start:end]`, with the length before it if it has one."""

    name: str
    start: int
    end: int


class Tagged(NamedTuple):
    """Where a tagged field has its size, `frame[start:end]`; its content ends at `until`."""

    start: int
    end: int
    until: int


@dataclass(slots=True)
class Found:
    """What a walk has found. `places` and `tagged` are in the order of the frame, an outer tagged
    field before those in it. `end`: where the walk ended. `left`: steps that it may take."""

    left: int
    places: list[Place] = field(default_factory=list)
    tagged: list[Tagged] = field(default_factory=list)
    end: int = 0

    def step(self) -> None:
        """Count a step. Raises `PeerError` beyond the bound."""
        self.left -= 1
        if self.left < 0:
            raise PeerError("a frame of too many fields")


Frame = bytes | bytearray

Step = Callable[[Frame, int, int, Found], int]
"""Steps over something at an offset of a frame that ends somewhere, and returns the next offset."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done for each struct of one kind. `least`: the fewest bytes that it can have. `most`:
    steps of a walk."""

    steps: tuple[Step, ...]
    least: int
    most: int = 0

    def walk(self, frame: Frame, start: int, end: int) -> Found:
        """Return what stands in the body `frame[start:end]`. Raises `PeerError` if it is torn."""
        found = Found(self.most)
        found.end = self.over(frame, start, end, found)
        return found

    def over(self, frame: Frame, at: int, end: int, found: Found) -> int:
        """Step over one struct."""
        for step in self.steps:
            at = step(frame, at, end, found)
        return at


@cache
def plan(
    schema: Schema, version: int, wanted: frozenset[str] = frozenset(), *, whole: bool = False
) -> Plan:
    """Return the plan that finds fields of these names, wherever they stand. A path such as
    `Topics/Name` means a field at this place alone; `Topics[]` means each element of an array, and
    `Topics#` the number of its elements. `whole`: the body is walked to its end, though nothing is
    wanted there."""
    flexible = version >= schema.flexible
    made = _Made(version, flexible, wanted).struct(schema.fields, "", whole=whole)
    return replace(made, most=schema.steps)


def text_at(frame: Frame, place: Place, *, flexible: bool) -> bytes | None:
    """Return the text of a place; None if it is null."""
    if flexible:
        length, at = read_unsigned(frame, place.start, place.end)
        return bytes(frame[at : place.end]) if length else None
    at = place.start + 2
    return None if frame[place.start : at] == b"\xff\xff" else bytes(frame[at : place.end])


def as_text(text: bytes, *, flexible: bool) -> bytes:
    """Return a text with its length before it."""
    return (unsigned(len(text) + 1) if flexible else len(text).to_bytes(2, signed=True)) + text


def splice(frame: bytes, found: Found, other: Iterable[tuple[Place, bytes]]) -> bytes:
    """Return the frame with other bytes in some places, which are given in its order."""
    changes = [(place.start, place.end, data) for place, data in other]
    # Inner fields are first, as their own sizes may change the size around them.
    for tag in reversed(found.tagged):
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
    """Return an unsigned varint."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_unsigned(frame: Frame, at: int, end: int) -> tuple[int, int]:
    """Return an unsigned varint of at most 32 bits, and where it ends. Raises `PeerError`."""
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
    """Return the offset behind tagged fields of which none is of interest. Raises `PeerError`."""
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
    """Return what reads a length of `size` bytes; 0: a compact one. `least`: -1 if it may be
    null, which is read as -1."""

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
        """Return the plan of a struct. `at`: its path, with a slash behind it. `whole`: it is
        stepped over to its end, as others follow."""
        here = [it for it in of(fields, self.version) if not self._is_tagged(it)]
        tagged = [it for it in of(fields, self.version) if self._is_tagged(it)]
        interesting = [self._is_interesting(it, at) for it in here]
        any_tagged = any(self._is_interesting(it, at) for it in tagged)
        if not (whole or any_tagged):
            here = (
                here[: len(interesting) - interesting[::-1].index(True)] if any(interesting) else []
            )
        steps: list[Step] = []
        numbers = least = 0
        for it in here:
            size = SIZES.get(it.kind, 0)
            if size and self._label(it, at) is None:
                numbers += size
            else:
                if numbers:
                    steps.append(_skip(numbers))
                    least += numbers
                    numbers = 0
                step, size = self._field(it, at)
                steps.append(step)
                least += size
        if numbers:
            steps.append(_skip(numbers))
            least += numbers
        if self.flexible and (whole or any_tagged):
            steps.append(self._tags(tagged, at))
            least += 1
        return Plan(tuple(steps), least)

    def _is_tagged(self, it: Field) -> bool:
        return it.tagged <= self.version

    def _label(self, it: Field, at: str) -> str | None:
        """Return as what a field is wanted; None: it is not."""
        path = at + it.name
        return next((label for label in (path, it.name) if label in self.wanted), None)

    def _is_interesting(self, it: Field, at: str) -> bool:
        path = at + it.name
        if self._label(it, at) is not None or not self.wanted.isdisjoint((path + "[]", path + "#")):
            return True
        inner = of(it.fields, self.version)
        return any(self._is_interesting(field, path + "/") for field in inner)

    def _field(self, it: Field, at: str) -> tuple[Step, int]:
        """Return the step over a field, and the fewest bytes that it takes."""
        step, least = self._value(it, at + it.name)
        label = self._label(it, at)
        return (step, least) if label is None else (_noted(label, step), least)

    def _value(self, it: Field, path: str) -> tuple[Step, int]:
        null = -1 if it.nullable <= self.version else 0
        kind = it.kind.removeprefix("[]")
        if it.kind.startswith("[]"):
            element, least = self._element(it, kind, path)
            read = _length(0 if self.flexible else 4, null)
            number = path + "#" if path + "#" in self.wanted else None
            return _array(read, element, least, number), 1 if self.flexible else 4
        if kind in SIZES:
            return _skip(SIZES[kind]), SIZES[kind]
        if kind == "{}":
            inner = self.struct(it.fields, path + "/", whole=True)
            if null:
                return _optional(inner), 1
            return inner.over, inner.least
        size = 0 if self.flexible else 2 if kind == "string" else 4
        return _text(_length(size, null)), size or 1

    def _element(self, it: Field, kind: str, path: str) -> tuple[Step | None, int]:
        """Return the step over one element, None for numbers, and its fewest bytes."""
        wanted = path + "[]" in self.wanted
        if kind in SIZES:
            size = SIZES[kind]
            return (_noted(path + "[]", _skip(size)) if wanted else None), size
        if kind == "{}":
            inner = self.struct(it.fields, path + "/", whole=True)
            return (_noted(path + "[]", inner.over) if wanted else inner.over), inner.least
        size = 0 if self.flexible else 2 if kind == "string" else 4
        step = _text(_length(size, 0))
        return (_noted(path + "[]", step) if wanted else step), size or 1

    def _tags(self, fields: list[Field], path: str) -> Step:
        known = {
            it.tag: (self._field(it, path)[0], self._is_interesting(it, path)) for it in fields
        }

        def over(frame: Frame, at: int, end: int, found: Found) -> int:
            count, at = read_unsigned(frame, at, end)
            for _ in range(count):
                found.step()
                tag, at = read_unsigned(frame, at, end)
                start = at
                size, at = read_unsigned(frame, at, end)
                until = at + size
                if until > end:
                    raise PeerError("a tagged field that is torn")
                if tag in known:
                    step, is_interesting = known[tag]
                    if is_interesting:
                        found.tagged.append(Tagged(start, at, until))
                    if step(frame, at, until, found) != until:
                        raise PeerError("a tagged field of another size than it states")
                at = until
            return at

        return over


def _skip(size: int) -> Step:
    def over(_frame: Frame, at: int, end: int, _found: Found) -> int:
        if size > end - at:
            raise PeerError("a frame that is torn")
        return at + size

    return over


def _text(read: Callable[[Frame, int, int], tuple[int, int]]) -> Step:
    def over(frame: Frame, at: int, end: int, _found: Found) -> int:
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
    """Return the step over an array. `number`: as what its length is wanted."""

    def over(frame: Frame, at: int, end: int, found: Found) -> int:
        start = at
        count, at = read(frame, at, end)
        if number is not None:
            found.places.append(Place(number, start, at))
        if count * least > end - at:
            raise PeerError(f"an array of {count} in a frame that is too short for them")
        if element is None:
            return at + max(0, count) * least
        for _ in range(count):
            found.step()
            at = element(frame, at, end, found)
        return at

    return over


def _optional(inner: Plan) -> Step:
    """Return the step over a struct that may be null, which a byte before it says."""

    def over(frame: Frame, at: int, end: int, found: Found) -> int:
        if at >= end:
            raise PeerError("a frame that is torn")
        is_there = frame[at] < 128  # a signed byte: below zero stands for null
        return inner.over(frame, at + 1, end, found) if is_there else at + 1

    return over


def _noted(name: str, step: Step) -> Step:
    def over(frame: Frame, at: int, end: int, found: Found) -> int:
        until = step(frame, at, end, found)
        found.places.append(Place(name, at, until))
        return until

    return over
