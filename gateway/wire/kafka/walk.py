"""Finds fields in the body of a frame without decoding the rest.

A *plan* is made once for a schema, a version and the names of the wanted fields: it is a program
for a `Walker`, which steps over all other fields, takes one step for consecutive numbers, and ends
at the last wanted field. `Plan.walker` finds one field after the other; `Plan.walk` returns a list
of the *places* of all wanted fields, for frames that are small. `splice` replaces the bytes at some
places, and corrects the sizes of the tagged fields around them.

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

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.kafka import walker
from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.slicing import CHEAP
from gateway.wire.kafka.walker import END, INSTRUCTION, PAUSED, TAGGED, Walker
from gateway.wire.slices import Slices, finished

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
    tagged field is before the ones inside it. `end`: the offset where the walk ended."""

    places: list[Place] = field(default_factory=list)
    tagged: list[Tagged] = field(default_factory=list)
    end: int = 0


Frame = bytes | bytearray


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The program for walks over the bodies of one version. `labels`: the name of each wanted
    field, by the label that a walker returns for it. `most`: the most steps of a walk."""

    code: bytes
    labels: tuple[str, ...]
    most: int

    def walker(self, frame: Frame, start: int, end: int) -> Walker:
        """Return a new walker over the body `frame[start:end]`."""
        return Walker(self.code, frame, start, end, self.most)

    def found(self, frame: Frame, start: int, end: int) -> Iterator[Place | None]:
        """Yield the wanted fields of the body `frame[start:end]` one by one, and None where the
        caller should pause. Raises `PeerError` if the body is truncated or malformed."""
        steps, labels, number = self.walker(frame, start, end), self.labels, 0
        while (label := steps.advance()) != END:
            if label >= 0:
                yield Place(labels[label], steps.start, steps.end)
                number += 1
            if label == PAUSED or (number and number % CHEAP == 0):
                yield None

    def walk(self, frame: Frame, start: int, end: int) -> Walk:
        """Return the wanted fields of the body `frame[start:end]`. Raises `PeerError` if the body
        is truncated or malformed."""
        walk, steps, labels = Walk(), self.walker(frame, start, end), self.labels
        while (label := steps.advance()) != END:
            if label >= 0:
                walk.places.append(Place(labels[label], steps.start, steps.end))
            elif label == TAGGED:
                walk.tagged.append(Tagged(steps.start, steps.end, steps.until))
        walk.end = steps.at
        return walk


@cache
def plan(
    schema: Schema,
    version: int,
    wanted: frozenset[str] = frozenset(),
    *,
    whole: bool = False,
    unless_zero: bool = False,
) -> Plan:
    """Return the plan that finds the fields with the `wanted` names, in any struct. A path such as
    `Topics/Name` means only the field of that struct. `Topics[]` means each element of an array,
    and `Topics#` the number of its elements. `whole`: the walk goes on to the end of the body, to
    check that it is well-formed, even behind the last wanted field. `unless_zero`: error codes that
    are zero are not wanted."""
    flexible = version >= schema.flexible
    made = _Made(version, flexible, wanted, unless_zero)
    made.struct(schema.fields, "", whole=whole)
    made.add(walker.STOP)
    code = b"".join(INSTRUCTION.pack(*cells) for cells in made.code)
    return Plan(code, tuple(made.labels), schema.steps)


def text_at(frame: Frame, place: Place | Walker, *, flexible: bool) -> bytes | None:
    """Return the text of the field at a place, or that a walker has found; None if it is null.
    `flexible`: the message is of a flexible version, whose lengths are compact."""
    if flexible:
        length, at = read_unsigned(frame, place.start, place.end)
        return bytes(frame[at : place.end]) if length else None
    at = place.start + 2
    return None if frame[place.start : at] == b"\xff\xff" else bytes(frame[at : place.end])


def topic_at(frame: Frame, place: Place | Walker, *, by_id: bool, flexible: bool) -> bytes:
    """Return the name of a topic at a place, or its id (`by_id`); empty if the name is null."""
    if by_id:
        return bytes(frame[place.start : place.end])
    return text_at(frame, place, flexible=flexible) or b""


def bytes_at(frame: Frame, place: Place | Walker, *, flexible: bool) -> bytes:
    """Return the block of bytes of the field at a place; empty if the field is null."""
    if flexible:
        _, at = read_unsigned(frame, place.start, place.end)
    else:
        at = place.start + 4
    return bytes(frame[at : place.end])


def as_text(text: bytes, *, flexible: bool) -> bytes:
    """Return the encoded form of a text: its length, then the text. `flexible`: the length is
    compact, as in flexible versions."""
    return (unsigned(len(text) + 1) if flexible else len(text).to_bytes(2, signed=True)) + text


Change = tuple[int, int, bytes]
"""The bytes that take the place of `frame[start:end]`, behind these two offsets."""


def splice(frame: bytes, walk: Walk, other: Iterable[tuple[Place, bytes]]) -> bytes:
    """Return the frame with the bytes at some places replaced, and with the sizes of the tagged
    fields around these places corrected. `other`: the places, each with its new bytes. `walk`: the
    walk that found the places."""
    changes = sorted((place.start, place.end, data) for place, data in other)
    return finished(spliced(frame, walk.tagged, changes))


def spliced(frame: bytes, tagged: list[Tagged], changes: list[Change]) -> Slices[bytes]:
    """Return the frame with `changes`, which are in the order of the frame, and with the sizes of
    tagged fields corrected; `frame` itself without changes. `tagged`: the tagged fields around
    places that may have changed, as `Walk` has them."""
    if not changes:
        return frame
    # Inner tagged fields are first, as their own sizes may change the size around them.
    for tag in reversed(tagged):
        first = bisect_left(changes, (tag.end,))
        grown = 0
        for start, end, data in islice(changes, first, None):
            if start >= tag.until:
                break
            grown += len(data) - (end - start)
        if grown:
            size = unsigned(tag.until - tag.end + grown)
            insort(changes, (tag.start, tag.end, size))
    parts, at = [], 0
    for number, (start, end, data) in enumerate(changes, 1):
        parts += [frame[at:start], data]
        at = end
        if number % CHEAP == 0:
            yield
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


# -- making plans ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Made:
    """Makes the program of one version. `code`: its instructions. `labels`: see `Plan`."""

    version: int
    flexible: bool
    wanted: frozenset[str]
    unless_zero: bool
    code: list[list[int]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    _targets: set[int] = field(default_factory=set)  # of jumps, as indexes

    def add(self, op: int, *arguments: int) -> list[int]:
        """Append an instruction, and return its cells."""
        cells = [op, *arguments, *[0] * (5 - len(arguments))]
        self.code.append(cells)
        return cells

    def struct(self, fields: tuple[Field, ...], at: str, *, whole: bool) -> int:
        """Add the steps over a struct, and return the fewest bytes that it takes. `at`: its path,
        with a slash behind it. `whole`: the struct is stepped over to its end, since other fields
        follow."""
        here = [member for member in of(fields, self.version) if not self._is_tagged(member)]
        tagged = [member for member in of(fields, self.version) if self._is_tagged(member)]
        interesting = [self._is_interesting(member, at) for member in here]
        any_tagged = any(self._is_interesting(member, at) for member in tagged)
        if not (whole or any_tagged):
            here = (
                here[: len(interesting) - interesting[::-1].index(True)] if any(interesting) else []
            )
        least = 0
        for member in here:
            size = SIZES.get(member.kind, 0)
            if size and self._label(member, at) is None:
                self._over(size)
                least += size
            else:
                least += self._field(member, at)
        if self.flexible and (whole or any_tagged):
            self._tags(tagged, at)
            least += 1
        return least

    def _over(self, size: int) -> None:
        """Step over a number, together with the numbers before it."""
        last = self.code[-1] if self.code and len(self.code) not in self._targets else None
        if last is not None and last[0] == walker.OVER:
            last[1] += size
        else:
            self.add(walker.OVER, size)

    def _is_tagged(self, field: Field) -> bool:
        return field.tagged <= self.version

    def _label(self, field: Field, at: str) -> str | None:
        """Return the name or path by which a field is wanted; None if it is not wanted."""
        path = at + field.name
        return next((label for label in (path, field.name) if label in self.wanted), None)

    def _number(self, label: str) -> int:
        """Return the number of a label."""
        if label not in self.labels:
            self.labels.append(label)
        return self.labels.index(label)

    def _is_interesting(self, field: Field, at: str) -> bool:
        path = at + field.name
        if self._label(field, at) is not None or not self.wanted.isdisjoint(
            (path + "[]", path + "#")
        ):
            return True
        inner = of(field.fields, self.version)
        return any(self._is_interesting(member, path + "/") for member in inner)

    def _field(self, field: Field, at: str) -> int:
        """Add the steps over a field, and return the fewest bytes that it takes."""
        label = self._label(field, at)
        if label is None:
            return self._value(field, at + field.name)
        self.add(walker.MARK)
        least = self._value(field, at + field.name)
        is_error = field.kind == "int16" and field.name.endswith("ErrorCode")
        self.add(walker.WANTED, self._number(label), int(self.unless_zero and is_error))
        return least

    def _value(self, field: Field, path: str) -> int:
        null = -1 if field.nullable <= self.version else 0
        kind = field.kind.removeprefix("[]")
        if field.kind.startswith("[]"):
            self._array(field, kind, path, null)
            return 1 if self.flexible else 4
        if kind in SIZES:
            self._over(SIZES[kind])
            return SIZES[kind]
        if kind == "{}" and null:
            optional = self.add(walker.OPTIONAL)
            self._enter()
            self.struct(field.fields, path + "/", whole=True)
            optional[4] = self._enter()
            return 1
        if kind == "{}":
            return self.struct(field.fields, path + "/", whole=True)
        return self._text(kind, null)

    def _text(self, kind: str, null: int) -> int:
        size = 0 if self.flexible else 2 if kind == "string" else 4
        self.add(walker.TEXT, size, null)
        return size or 1

    def _array(self, field: Field, kind: str, path: str, null: int) -> None:
        size = 0 if self.flexible else 4
        is_wanted = path + "[]" in self.wanted
        number = self._number(path + "#") if path + "#" in self.wanted else -1
        if kind in SIZES and not is_wanted and number < 0:
            self.add(walker.RUN, size, null, SIZES[kind])
            return
        loop = self.add(walker.LOOP, size, null, 0, 0, number)
        self._enter()
        if is_wanted:
            self.add(walker.MARK)
        if kind in SIZES:
            self._over(SIZES[kind])
            loop[3] = SIZES[kind]
        elif kind == "{}":
            loop[3] = max(1, self.struct(field.fields, path + "/", whole=True))
        else:
            loop[3] = self._text(kind, 0)
        if is_wanted:
            self.add(walker.WANTED, self._number(path + "[]"))
        self.add(walker.NEXT)
        loop[4] = self._enter()

    def _tags(self, fields: list[Field], path: str) -> None:
        tags = self.add(walker.TAGS)
        here = self._enter()
        tag = self.add(walker.TAG)
        known = [
            self.add(walker.KNOWN, field.tag, int(self._is_interesting(field, path)))
            for field in fields
        ]
        for cells, member in zip(known, fields, strict=True):
            cells[4] = self._enter()
            self._field(member, path)
            self.add(walker.UNTAG, 0, 0, 0, here)
        tags[4] = tag[4] = self._enter()

    def _enter(self) -> int:
        """Return the offset of the next instruction, which is entered from elsewhere."""
        self._targets.add(len(self.code))
        return len(self.code) * INSTRUCTION.size
