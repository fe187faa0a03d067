"""Malformed variants of well-formed commands: fields that are repeated, moved, cut, overlong, or of
another kind.

A command is split into the raw bytes of its fields, at any depth, and reassembled with some of them
changed. All choices come from one `random.Random`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from random import Random

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import KNOWN, Kind
from tests.fuzz.grammar import body as body_of
from tests.fuzz.source import Source
from tests.support.frames import command, data, fixed, group, number, varint

from .names import any_name

Raw = bytes
"""A field with its tag."""

_TYPES = sorted(KNOWN)
_WANTED = (
    Kind.PRODUCER,
    Kind.SUBSCRIBE,
    Kind.SEND,
    Kind.FLOW,
    Kind.CLOSE_PRODUCER,
    Kind.UNSUBSCRIBE,
    Kind.LOOKUP,
    Kind.AUTH_RESPONSE,
    Kind.END_TXN,
)
"""Types worth smuggling."""

_PASSING = (18, 19, 10, 20, 28, 29, 25, 34, 50, 70, 75, 79)
"""Types that a gateway hardly reads, some of them unknown to older brokers."""

_ODD_TYPES = (0, 1, 41, 49, 69, 70, 71, 73, 76, 79, 81, 82, 127, 128, 255, 300, (1 << 32) + 6)
_NEGATIVE = (1 << 64) - 1
_NUMBERS = (0, 1, 2, 3, 127, 128, 1000, (1 << 31) - 1, 1 << 31, (1 << 32) + 1, 1 << 63, _NEGATIVE)
_TEXTS = (b"", b"x", b"\xff\xfe", b"t/n/\xed\xa0\x80", b"pulsar://broker-1.internal:6650")


# -- splitting -----------------------------------------------------------------------------------


def varint_at(content: bytes, at: int) -> tuple[int, int]:
    """Return a number and the offset after it."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def split_fields(content: bytes) -> list[Raw]:
    """Return the fields of a message that protobuf wrote."""
    fields, at = list[Raw](), 0
    while at < len(content):
        begin = at
        tag, at = varint_at(content, at)
        wire = tag & 7
        if wire == 0:
            _, at = varint_at(content, at)
        elif wire == 2:
            size, at = varint_at(content, at)
            at += size
        else:
            at += 8 if wire == 1 else 4
        fields.append(content[begin:at])
    return fields


def _parts(field: Raw) -> tuple[int, int, bytes]:
    """Return number, wire type and content of a field that protobuf wrote; a number's content is
    its varint."""
    tag, at = varint_at(field, 0)
    if tag & 7 == 2:
        _, at = varint_at(field, at)
    return tag >> 3, tag & 7, field[at:]


@cache
def descriptor_of(kind: int) -> Descriptor | None:
    """Return the message descriptor of a command type."""
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(kind)
    return None if field is None else field.message_type


def true_fields(rng: Random, kind: int) -> list[Raw]:
    """Return the fields of a command: a few as clients write them, or any of the schema."""
    write = _USUAL.get(kind)
    if write is not None and rng.random() < 0.6:
        return split_fields(write(rng))
    return _any_fields(rng, kind)


def _id(rng: Random) -> int:
    return rng.choice((1, 1, 1, 2, 3))


def _request(rng: Random) -> int:
    return rng.choice((1, 2, 7, 50, 300))


def _opening(rng: Random, id: bytes, request: bytes, more: bytes = b"") -> bytes:
    return data(1, any_name(rng)) + more + id + request


def _credential(rng: Random) -> bytes:
    return data(1, b"token") + data(2, rng.choice(_PROOFS))


_PROOFS = (b"alice's token", b"alice's newer token", b"bob's token")

_USUAL: dict[int, Callable[[Random], bytes]] = {
    Kind.PRODUCER: lambda rng: _opening(rng, number(2, _id(rng)), number(3, _request(rng))),
    Kind.SUBSCRIBE: lambda rng: _opening(
        rng, number(4, _id(rng)), number(5, _request(rng)), data(2, b"s") + number(3, 0)
    ),
    Kind.LOOKUP: lambda rng: _opening(rng, number(2, _request(rng)), b""),
    Kind.PARTITIONED_METADATA: lambda rng: _opening(rng, number(2, _request(rng)), b""),
    Kind.SEND: lambda rng: number(1, _id(rng)) + number(2, _request(rng)),
    Kind.FLOW: lambda rng: number(1, _id(rng)) + number(2, rng.choice((1, 2, 100))),
    Kind.CLOSE_PRODUCER: lambda rng: number(1, _id(rng)) + number(2, _request(rng)),
    Kind.CLOSE_CONSUMER: lambda rng: number(1, _id(rng)) + number(2, _request(rng)),
    Kind.UNSUBSCRIBE: lambda rng: number(1, _id(rng)) + number(2, _request(rng)),
    Kind.END_TXN: lambda rng: number(1, _request(rng)) + number(2, 3) + number(4, 1),
    Kind.AUTH_RESPONSE: lambda rng: data(1, b"v") + data(2, _credential(rng)),
    Kind.PING: lambda rng: b"",
    Kind.ACK: lambda rng: number(1, _id(rng)) + number(2, 0) + data(3, number(1, 5) + number(2, 6)),
    Kind.SEEK: lambda rng: number(1, _id(rng)) + number(2, _request(rng)),
    Kind.GET_SCHEMA: lambda rng: number(1, _request(rng)) + data(2, any_name(rng)),
}
"""Commands with all their required fields, so that decoders read past them."""


def _any_fields(rng: Random, kind: int) -> list[Raw]:
    """Return fields of the schema, with topics of all kinds of names."""
    fields = split_fields(body_of(Source(rng.randbytes(64)), kind))
    shape = descriptor_of(kind)
    if shape is None:
        return fields
    for index, field in enumerate(fields):
        known = shape.fields_by_number.get(field[0] >> 3)
        if known is not None and known.name == "topic" and rng.random() < 0.7:
            fields[index] = data(known.number, any_name(rng))
    return fields


# -- changing a message's fields -----------------------------------------------------------------


def mutated(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    """Return the message with one change. `others`: fields of another such message."""
    nested = [index for index, field in enumerate(fields) if _is_message(field, shape)]
    if nested and rng.random() < 0.3:
        index = rng.choice(nested)
        inner, content = _inner(fields[index], shape)
        within = mutated(rng, split_fields(content), inner, [])
        fields = [*fields[:index], data(fields[index][0] >> 3, within), *fields[index + 1 :]]
        return b"".join(fields)
    return rng.choice(_CHANGES)(rng, list(fields), shape, others)


def _is_message(field: Raw, shape: Descriptor | None) -> bool:
    known = None if shape is None else shape.fields_by_number.get(_parts(field)[0])
    return known is not None and known.message_type is not None and _parts(field)[1] == 2


def _inner(field: Raw, shape: Descriptor | None) -> tuple[Descriptor | None, bytes]:
    tag, _, content = _parts(field)
    known = None if shape is None else shape.fields_by_number.get(tag)
    return (None if known is None else known.message_type), content


def _put(rng: Random, fields: list[Raw], field: Raw) -> bytes:
    """Insert a field among the others: mostly first or last."""
    at = rng.choice((0, len(fields), rng.randint(0, len(fields))))
    return b"".join((*fields[:at], field, *fields[at:]))


def _repeated(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    """Repeat a field with another value."""
    return _put(rng, fields, rng.choice(others or fields or [b""]))


def _added(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    """Add an unknown field of any wire type."""
    return _put(rng, fields, unknown_field(rng, rng.choice((13, 15, 40, 100, 1000, 1 << 27))))


def unknown_field(rng: Random, of: int) -> Raw:
    """Return a field of this number, whatever its meaning."""
    match rng.randrange(7):
        case 0:
            return number(of, rng.choice(_NUMBERS), rng.choice((0, 5, 10)))
        case 1:
            return fixed(of, rng.randbytes(4))
        case 2:
            return fixed(of, rng.randbytes(8))
        case 3:
            return group(of, rng.choice((b"", number(1, 6))))
        case 4:
            return varint(of << 3 | rng.choice((3, 4, 6, 7)))
        case 5:
            return data(of, number(1, rng.choice(_TYPES)))
        case _:
            return data(of, rng.choice(_TEXTS), rng.choice((0, 2, 5)))


def _shuffled(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    rng.shuffle(fields)
    return b"".join(fields)


def _field_left_out(
    rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]
) -> bytes:
    if fields:
        del fields[rng.randrange(len(fields))]
    return b"".join(fields)


def _overlong(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    """Write tag, length or number in more bytes than needed, or with more bits than allowed."""
    if not fields:
        return number(1, 1, 5, 5)
    index = rng.randrange(len(fields))
    of, wire, content = _parts(fields[index])
    tag = of << 3 | wire
    if rng.random() < 0.3:
        tag |= rng.choice((1, 7, 0x10)) << 32
    head = varint(tag, rng.choice((0, 2, 3, 5, 10, 11)))
    width = rng.choice((0, 2, 4, 5, 9, 10, 11))
    if wire == 2:
        fields[index] = head + varint(len(content), width) + content
    elif wire == 0:
        value, _ = varint_at(content, 0)
        high = rng.choice((0, 0, 1 << 32, 1 << 63))
        fields[index] = head + varint(value | high, width)
    else:
        fields[index] = head + content
    return b"".join(fields)


def _false_length(
    rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]
) -> bytes:
    """Write a false length."""
    sized = [index for index, field in enumerate(fields) if _parts(field)[1] == 2]
    if not sized:
        return b"".join(fields)
    index = rng.choice(sized)
    of, _, content = _parts(fields[index])
    size = len(content)
    wrong = rng.choice((0, 1, size + 1, size + 2, size + 9, max(0, size - 1), 1 << 20, *_NUMBERS))
    fields[index] = varint(of << 3 | 2) + varint(wrong) + content
    return b"".join(fields)


def _cut(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    whole = b"".join(fields)
    return whole[: rng.randint(0, len(whole))]


def _other_value(
    rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]
) -> bytes:
    """Use a value out of range, or a text that is none."""
    if not fields:
        return b""
    index = rng.randrange(len(fields))
    of, wire, _ = _parts(fields[index])
    fields[index] = data(of, rng.choice(_TEXTS)) if wire == 2 else number(of, rng.choice(_NUMBERS))
    return b"".join(fields)


def _edge(rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]) -> bytes:
    """Give a field of the schema an extreme value of its type, in place of its own or beside it."""
    if shape is None or not shape.fields:
        return b"".join(fields)
    field = rng.choice(shape.fields)
    value = _edged(rng, field)
    if rng.random() < 0.6:
        fields = [each for each in fields if _parts(each)[0] != field.number]
    return _put(rng, fields, value)


def _edged(rng: Random, field: FieldDescriptor) -> Raw:
    of = field.number
    if field.type == field.TYPE_BOOL:
        return number(of, rng.choice((2, 255, 256, (1 << 32) + 1, 1 << 32, _NEGATIVE)))
    if field.enum_type is not None:
        known = rng.choice(field.enum_type.values).number
        return number(of, rng.choice((99, known + (1 << 32), _NEGATIVE, known)), rng.choice((0, 9)))
    if field.type in (field.TYPE_INT32, field.TYPE_UINT32):
        small = rng.choice((0, 1, 5))
        edges = (small + (1 << 32), small + (1 << 35), 1 << 31, (1 << 32) - 1, _NEGATIVE)
        return number(of, rng.choice(edges), rng.choice((0, 10)))
    if field.message_type is not None:
        inner = field.message_type.fields
        parts = [_edged(rng, rng.choice(inner)) for _ in range(rng.randrange(3)) if inner]
        return data(of, b"".join(parts)) * rng.choice((1, 1, 2))
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        return data(of, rng.choice(_TEXTS), rng.choice((0, 5)))
    return number(of, rng.choice(_NUMBERS), rng.choice((0, 10, 10, 11)))


def _other_wire(
    rng: Random, fields: list[Raw], shape: Descriptor | None, others: list[Raw]
) -> bytes:
    """Give a known field another wire type, in place of itself or beside it."""
    if not fields:
        return b""
    index = rng.randrange(len(fields))
    strange = unknown_field(rng, _parts(fields[index])[0])
    if rng.random() < 0.5:
        fields[index] = strange
        return b"".join(fields)
    return _put(rng, fields, strange)


Change = Callable[[Random, list[Raw], Descriptor | None, list[Raw]], bytes]

_CHANGES: tuple[Change, ...] = (
    _repeated,
    _repeated,
    _added,
    _shuffled,
    _field_left_out,
    _overlong,
    _overlong,
    _false_length,
    _cut,
    _other_value,
    _other_value,
    _other_wire,
    _edge,
    _edge,
    _edge,
    _edge,
)


# -- changing the command around it --------------------------------------------------------------


def odd_type(rng: Random) -> int:
    return rng.choice((rng.choice(_ODD_TYPES), rng.choice(_PASSING), rng.choice(_TYPES)))


def odd_command(rng: Random, kind: int, body: bytes) -> bytes:
    """Return a command that is more than a type followed by a body."""
    return rng.choice(_COMMANDS)(rng, kind, body)


def _behind_another(rng: Random, kind: int, body: bytes) -> bytes:
    """Return a correct command with a second one behind it or within it."""
    other = rng.choice(_WANTED)
    hidden = command(other, b"".join(true_fields(rng, other)))
    if rng.random() < 0.3:
        hidden = data(other, b"".join(true_fields(rng, other))) + number(1, other)
    match rng.randrange(3):
        case 0:
            return command(kind, body) + hidden
        case 1:
            return command(kind, body + hidden)[: rng.choice((-1, -2, 1 << 20))]
        case _:
            return number(1, kind) + varint(kind << 3 | 2) + varint(len(body)) + body + hidden


def spilled(rng: Random, kind: int, body: bytes) -> tuple[bytes, bytes]:
    """Return a command that ends within its last field, and the missing part."""
    if rng.random() < 0.5:
        whole = command(kind, body)  # the fields within it keep their sizes
        cut = rng.randint(2, len(whole))
        return whole[:cut], whole[cut:]
    cut = rng.randint(0, len(body))
    return command(kind, body[:cut]), body[cut:]


def _type_twice(rng: Random, kind: int, body: bytes) -> bytes:
    parts = [number(1, kind), number(1, odd_type(rng)), data(kind, body)]
    if rng.random() < 0.4:
        rng.shuffle(parts)
    if rng.random() < 0.2:
        parts.append(number(1, odd_type(rng)))
    return b"".join(parts)


def _two_bodies(rng: Random, kind: int, body: bytes) -> bytes:
    """Add a second body of the same kind or of another."""
    other = kind if rng.random() < 0.5 else rng.choice(_WANTED)
    parts = [number(1, kind), data(kind, body), data(other, b"".join(true_fields(rng, other)))]
    if rng.random() < 0.5:
        parts.insert(rng.randrange(4), number(1, other))
    if rng.random() < 0.5:
        parts[1:] = reversed(parts[1:])
    return b"".join(parts)


def _surrounded(rng: Random, kind: int, body: bytes) -> bytes:
    """Add an unknown field, mostly in front."""
    strange = unknown_field(rng, rng.choice((1, 1, 90, 100, 100, 1 << 25, rng.choice(_TYPES))))
    parts = [number(1, kind), data(kind, body)]
    parts.insert(rng.choice((0, 0, 1, 2)), strange)
    return b"".join(parts)


def _wide(rng: Random, kind: int, body: bytes) -> bytes:
    """Write numbers in more bytes or bits than needed."""
    high = rng.choice((0, 0, 1 << 32, 1 << 35))
    type_tag = varint(8 | (high if rng.random() < 0.5 else 0), rng.choice((0, 2, 5, 10)))
    of = varint(kind | (high if rng.random() < 0.5 else 0), rng.choice((0, 2, 5, 10, 11)))
    body_tag = varint(kind << 3 | 2 | rng.choice((0, 0, 1 << 32)), rng.choice((0, 3, 5, 10)))
    return type_tag + of + body_tag + varint(len(body), rng.choice((0, 3, 5, 10, 11))) + body


def _ill_sized(rng: Random, kind: int, body: bytes) -> bytes:
    """Give the body a false length."""
    size = len(body)
    wrong = rng.choice((0, 1, size - 1, size + 1, size + 2, size + 8, 1 << 31, _NEGATIVE, 1 << 32))
    behind = rng.choice((b"", number(1, odd_type(rng)), data(kind, body)))
    return number(1, kind) + varint(kind << 3 | 2) + varint(max(0, wrong)) + body + behind


def _body_first(rng: Random, kind: int, body: bytes) -> bytes:
    return data(kind, body) + number(1, kind)


def _incomplete(rng: Random, kind: int, body: bytes) -> bytes:
    return rng.choice((data(kind, body), number(1, kind), b"", number(1, odd_type(rng)) + body))


def _of_another_type(rng: Random, kind: int, body: bytes) -> bytes:
    return number(1, odd_type(rng)) + data(kind, body)


_COMMANDS: tuple[Callable[[Random, int, bytes], bytes], ...] = (
    _type_twice,
    _type_twice,
    _type_twice,
    _two_bodies,
    _two_bodies,
    _behind_another,
    _behind_another,
    _surrounded,
    _surrounded,
    _wide,
    _ill_sized,
    _body_first,
    _incomplete,
    _of_another_type,
)


# -- the frame around the command ----------------------------------------------------------------

_sizes = struct.Struct(">II").pack


def framed(rng: Random, command: bytes, rest: bytes, lies: float) -> bytes:
    """Return a frame; `lies`: the probability of a false size."""
    total, size = len(command) + len(rest) + 4, len(command)
    if rng.random() < lies:
        size = rng.choice((size - 1, size - 2, size + 1, size + 3, 0, 2, total - 4, total, 1 << 31))
        size = max(0, size)
    elif rng.random() < lies / 8:
        total = rng.choice((total + 1, total - 1, 4, 0, 1 << 31))
    return _sizes(total & 0xFFFFFFFF, size & 0xFFFFFFFF) + command + rest
