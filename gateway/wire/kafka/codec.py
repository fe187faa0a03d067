"""Decodes the bodies of messages into dicts and encodes dicts, by the schema of a version.

A struct is a dict whose keys are the field names of the schema. An array is a list, a text is a
`str`, and an id (`uuid`) is 16 bytes. A decoded dict has all fields of its version, but of tagged
fields only those that were sent. A dict to encode may have fields of other versions, which are left
out. It may lack fields of its version, which become null where the schema allows null, and else
zero or empty.

Decoding is a hundred times as slow as walking over a body (`walk`), so the gateway walks over the
frames that it forwards. This module is used only for synthetic responses, and for the brokers in
memory of `lab`.

Source: the protocol guide of Apache Kafka, and KIP-482 for compact lengths and tagged fields.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from gateway.errors import PeerError
from gateway.wire.kafka.schema import of
from gateway.wire.kafka.walk import SIZES, read_unsigned, unsigned
from gateway.wire.slices import Slices, finished

if TYPE_CHECKING:
    from gateway.wire.kafka.schema import Field, Schema

    Struct = dict[str, Any]

MOST_ELEMENTS = 50_000
"""The most elements and tagged fields of one body: each becomes an object of some hundred bytes.
Requests of real clients have some hundreds."""

AT_ONCE = 200
"""Elements that are decoded or encoded in one slice: each takes up to 10 µs."""

_NUMBERS = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "uuid": struct.Struct(">16s"),
}

_EMPTY = {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16)}
"""By type: the value of a field that the dict lacks. All other types are numbers."""

_NULL, _PRESENT = 255, 1
"""The byte before a struct that may be null. Readers take any negative byte for null."""


def decode(schema: Schema, version: int, body: bytes) -> Struct:
    """Return a body as a dict; see `decoded`."""
    return finished(decoded(schema, version, body))


def encode(schema: Schema, version: int, body: Struct) -> bytes:
    """Return the bytes of a body that is given as a dict; see `encoded`."""
    return finished(encoded(schema, version, body))


def decoded(schema: Schema, version: int, body: bytes) -> Slices[Struct]:
    """Return a body as a dict. Bytes after the end of the body are ignored, as brokers ignore them:
    librdkafka 2.16 sends three such bytes after a Metadata request for all topics. Raises
    `PeerError` if the body is truncated or malformed."""
    return _Reader(body, version, flexible=version >= schema.flexible).struct(schema.fields)


def encoded(schema: Schema, version: int, body: Struct) -> Slices[bytes]:
    """Return the bytes of a body that is given as a dict. Raises `KeyError` if the dict has a name
    that no version of the schema has."""
    writer = _Writer(version, flexible=version >= schema.flexible)
    yield from writer.struct(schema.fields, body)
    return bytes(writer.data)


class _Reader:
    """Reads one body. `at`: the offset of the next byte. `end`: of the body, or of the tagged field
    that is being read."""

    def __init__(self, body: bytes, version: int, *, flexible: bool) -> None:
        self.at = 0
        self.end = len(body)
        self._body = body
        self._version = version
        self._flexible = flexible
        self._left = MOST_ELEMENTS

    def struct(self, fields: tuple[Field, ...]) -> Slices[Struct]:
        present = list(of(fields, self._version))
        values: Struct = {}
        for field in present:
            if field.tagged > self._version:
                values[field.name] = yield from self._value(field)
        if self._flexible:
            known = {field.tag: field for field in present if field.tagged <= self._version}
            yield from self._tags(known, values)
        return values

    def _value(self, field: Field) -> Slices[Any]:
        kind = field.kind.removeprefix("[]")
        may_be_null = field.nullable <= self._version
        if field.kind.startswith("[]"):
            count = self._length(4, may_be_null=may_be_null)
            if count > self.end - self.at:  # an element has at least one byte
                raise PeerError(f"an array of {count} in a body that is too short for them")
            return None if count < 0 else (yield from self._elements(field, kind, count))
        if kind == "{}":
            is_null = may_be_null and self._take(1)[0] > 127
            return None if is_null else (yield from self.struct(field.fields))
        return self._plain(kind, may_be_null=may_be_null)

    def _elements(self, field: Field, kind: str, count: int) -> Slices[list[Any]]:
        elements: list[Any] = []
        for _ in range(count):
            self._count()
            if self._left % AT_ONCE == 0:
                yield
            if kind == "{}":
                elements.append((yield from self.struct(field.fields)))
            else:
                elements.append(self._plain(kind, may_be_null=False))
        return elements

    def _plain(self, kind: str, *, may_be_null: bool) -> Any:
        if kind in SIZES:
            return _NUMBERS[kind].unpack(self._take(SIZES[kind]))[0]
        length = self._length(2 if kind == "string" else 4, may_be_null=may_be_null)
        if length < 0:
            return None
        data = self._take(length)
        return _text(data) if kind == "string" else data

    def _tags(self, known: dict[int, Field], values: Struct) -> Slices[None]:
        for _ in range(self._unsigned()):
            self._count()
            if self._left % AT_ONCE == 0:
                yield
            tag, size = self._unsigned(), self._unsigned()
            outer, until = self.end, self.at + size
            if until > outer:
                raise PeerError("a tagged field that is torn")
            if tag in known:
                self.end = until
                values[known[tag].name] = yield from self._value(known[tag])
                if self.at != until:
                    raise PeerError("a tagged field of another size than it states")
            self.at, self.end = until, outer

    def _length(self, size: int, *, may_be_null: bool) -> int:
        """Return a length; -1 for null. `size`: its bytes, where it is not compact."""
        if self._flexible:
            length = self._unsigned() - 1
        else:
            length = int.from_bytes(self._take(size), "big", signed=True)
        if length < (-1 if may_be_null else 0):
            raise PeerError(f"a length of {length}")
        return length

    def _unsigned(self) -> int:
        number, self.at = read_unsigned(self._body, self.at, self.end)
        return number

    def _take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > self.end:
            raise PeerError("a body that is torn")
        return self._body[start : self.at]

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise PeerError(f"a body of more than {MOST_ELEMENTS} elements")


class _Writer:
    """Writes one body. `data`: the bytes written so far."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.data = bytearray()
        self._version = version
        self._flexible = flexible
        self._elements = 0

    def struct(self, fields: tuple[Field, ...], given: Struct) -> Slices[None]:
        unknown = given.keys() - {field.name for field in fields}
        if unknown:
            raise KeyError(*sorted(unknown))
        present = list(of(fields, self._version))
        for field in present:
            if field.tagged > self._version:
                yield from self._value(field, given.get(field.name))
        if self._flexible:
            tagged = [
                field for field in present if field.tagged <= self._version and field.name in given
            ]
            yield from self._tags(sorted(tagged, key=lambda field: field.tag), given)

    def _value(self, field: Field, value: Any) -> Slices[None]:
        kind = field.kind.removeprefix("[]")
        is_null = value is None and field.nullable <= self._version
        if field.kind.startswith("[]"):
            elements = [] if value is None else value
            self._length(-1 if is_null else len(elements), 4)
            for element in elements:
                self._elements += 1
                if self._elements % AT_ONCE == 0:
                    yield
                yield from self._plain(field, kind, element)
        elif kind == "{}" and field.nullable <= self._version:
            self.data.append(_NULL if is_null else _PRESENT)
            if not is_null:
                yield from self.struct(field.fields, value)
        elif is_null:
            self._length(-1, 2 if kind == "string" else 4)
        else:
            yield from self._plain(field, kind, value)

    def _plain(self, field: Field, kind: str, value: Any) -> Slices[None]:
        if kind == "{}":
            yield from self.struct(field.fields, value or {})
            return
        if value is None:
            value = _EMPTY.get(kind, 0)
        if kind in SIZES:
            self.data += _NUMBERS[kind].pack(value)
            return
        data = value.encode() if kind == "string" else value
        self._length(len(data), 2 if kind == "string" else 4)
        self.data += data

    def _length(self, length: int, size: int) -> None:
        if self._flexible:
            self.data += unsigned(length + 1)
        else:
            self.data += length.to_bytes(size, "big", signed=True)

    def _tags(self, fields: list[Field], given: Struct) -> Slices[None]:
        self.data += unsigned(len(fields))
        for field in fields:
            outer, self.data = self.data, bytearray()
            yield from self._value(field, given[field.name])
            content, self.data = self.data, outer
            self.data += unsigned(field.tag) + unsigned(len(content)) + content


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PeerError("a text that is not UTF-8") from error
