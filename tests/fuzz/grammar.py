"""Frames out of a fuzzer's bytes: true ones, almost true ones, and noise.

Commands are filled in by the schema, so that those of later versions come along by themselves.
Their values are few, so that ids and requests of both sides meet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto import pulsar_wire_pb2
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import KNOWN, Kind
from tests.playbooks.services import (
    BROKER_1,
    BROKER_2,
    NAME_1,
    NAME_2,
    OTHER_CLUSTER,
    URL_1,
    URL_2,
)
from tests.support.commands import COUNTED, STOPS
from tests.support.frames import LARGEST, data, entry_of, frame, metadata_of, number, tail, varint
from tests.support.requests import FIRST_OWN

from .source import Source

_NUMBERS = (1, 2, 3, 0, 4, 5, 127, 128, 1 << 31, FIRST_OWN, FIRST_OWN + 1, 1 << 63, LARGEST)
_URLS = (
    URL_1,
    URL_2,
    "",
    f"pulsar+ssl://{BROKER_1}",
    f"pulsar://{OTHER_CLUSTER}",
    "pulsar://elsewhere:6650",
    "pulsar://[::1",
    "pulsar://host:99999",
    "nonsense",
)
_NAMES = ("", f"{NAME_1}:6650", NAME_2, "three.gw:6650", str(BROKER_1))
_TOPICS = (
    "persistent://public/default/t",
    "t",
    "",
    "persistent://public/default/forbidden",
    "persistent://pulsar/system/reports",
    "pulsar/system/transaction_coordinator_assign-1",
)
_MESSAGES = ("no", f"at {URL_1}", f"{BROKER_2.host}/10.0.0.7:6650 is being unloaded", "", "\u20ac")
_PROOFS = (b"alice's token", b"alice's newer token", b"alice's expired token", b"bob's token", b"")
_METHODS = ("token", "", "sasl")

_TEXTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("proxy_to_broker_url", _NAMES),
    ("url", _URLS),
    ("address", (f"/{BROKER_1}", "/10.0.0.7:40112")),
    ("message", _MESSAGES),
    ("topic", _TOPICS),
    ("principal", ("", "alice", "bob", "proxy")),
    ("auth_data", tuple(proof.decode() for proof in _PROOFS)),
    ("method", _METHODS),
    ("", ("p", "", "a text")),
)
"""What texts say, by a part of their field's name."""

FLAWED = b"\xff\xfe"
"""A text that is not UTF-8."""

DEEPEST = 3

_KINDS = {
    direction: (*sorted(STOPS[direction] | COUNTED[direction]), *sorted(COUNTED[direction]) * 8)
    for direction in Direction
}
_ALL = sorted(KNOWN)


# -- commands ----------------------------------------------------------------------------------


def kind(source: Source, direction: Direction) -> int:
    """Mostly one that a scanner of this direction looks at."""
    choice = source.byte()
    if choice < 160:
        return _KINDS[direction][choice % len(_KINDS[direction])]
    return _ALL[choice % len(_ALL)] if choice < 250 else source.below(128)


def body(source: Source, of: int) -> bytes:
    """The fields of a command."""
    field = BaseCommand.DESCRIPTOR.fields_by_number.get(of)
    described = None if field is None else field.message_type
    if described is None:
        return source.take(source.below(20))
    message: Message = getattr(pulsar_wire_pb2, described.name)()
    _fill(source, message, described, 0)
    return message.SerializePartialToString()


def _fill(source: Source, message: Message, described: Descriptor, depth: int) -> None:
    """Required fields nearly always, others by a bit of a byte for eight of them."""
    mask = 0
    for index, field in enumerate(described.fields):
        if index % 8 == 0:
            mask = source.byte()
        chosen = bool(mask >> index % 8 & 1)
        if chosen != field.is_required:
            _set(source, message, field, depth)


def _set(source: Source, message: Message, field: FieldDescriptor, depth: int) -> None:
    place: Any = getattr(message, field.name)
    if field.message_type is None:
        times = 1 + source.below(3) if field.is_repeated else 1
        values = [_value(source, field) for _ in range(times)]
        if field.is_repeated:
            place.extend(values)
        else:
            setattr(message, field.name, values[0])
    elif depth < DEEPEST:
        for _ in range(1 + source.below(2) if field.is_repeated else 1):
            inner = place.add() if field.is_repeated else place
            inner.SetInParent()
            _fill(source, inner, field.message_type, depth + 1)


def _value(source: Source, field: FieldDescriptor) -> Any:
    if field.type == field.TYPE_STRING:
        return source.pick(next(texts for part, texts in _TEXTS if part in field.name.lower()))
    if field.type == field.TYPE_BYTES:
        return source.pick(_PROOFS)
    if field.type == field.TYPE_BOOL:
        return not source.odd(4)
    if field.enum_type is not None:
        return source.pick(field.enum_type.values).number
    return _fitting(source, field)


def _fitting(source: Source, field: FieldDescriptor) -> float:
    """A number that the field can hold."""
    value = source.pick(_NUMBERS)
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32):
        return value & 0x7FFFFFFF
    return value if field.cpp_type == field.CPPTYPE_UINT64 else value & ((1 << 63) - 1)


# -- what follows commands ---------------------------------------------------------------------


def rest(source: Source, of: int) -> bytes:
    """Of a SEND or MESSAGE, and at times of another frame."""
    if of not in (Kind.SEND, Kind.MESSAGE):
        return source.take(source.below(9)) if source.odd(16) else b""
    shape = source.byte()
    entry = entry_of(index=source.number()) if of == Kind.MESSAGE and shape & 7 == 7 else None
    payload = bytes(source.below(40)) if shape & 8 else b"payload"
    lie = source.pick((1, 60, 1 << 31, LARGEST >> 32)) if shape & 0x70 == 0x70 else None
    checksum = shape & 0x80 == 0
    return tail(metadata(source), payload, checksum=checksum, entry=entry, length=lie)


def metadata(source: Source) -> bytes:
    """Of a message: as clients write it, or fields in any order and encoding."""
    shape = source.byte()
    if shape < 128:
        batch = {"num_messages_in_batch": source.number() & 0x7FFFFFFF} if shape & 1 else {}
        return metadata_of(source.number(), **batch)
    if shape < 224:
        return b"".join(_field(source) for _ in range(source.below(7)))
    return source.take(source.below(24))


_FIELDS = (11, 1, 2, 3, 18, 100, 1 << 27, 0, 11 + 32)
"""Those that are looked at, others, none, and one whose first byte is that of another."""


def _field(source: Source) -> bytes:
    shape, width = source.byte(), source.byte()
    field = _FIELDS[shape % len(_FIELDS)]
    if shape < 128:
        return number(field, source.number(), width % 11, width >> 4 & 3)
    if shape < 240:
        size = 9000 if width == 255 else width % 30
        return data(field, bytes(size), width >> 5)
    return varint(field << 3 | source.below(8)) + source.take(4)


# -- frames ------------------------------------------------------------------------------------


def true_frame(source: Source, direction: Direction) -> bytes:
    """A frame as peers write them, whatever its fields say."""
    return frame_of(source, kind(source, direction))


def frame_of(source: Source, of: int) -> bytes:
    """A true frame of one kind."""
    return frame(_canonical(of, body(source, of)), rest(source, of))


def any_frame(source: Source, direction: Direction) -> bytes:
    """A true one in most cases."""
    shape = source.byte()
    if shape < 176:
        return true_frame(source, direction)
    return _FLAWS[shape % len(_FLAWS)](source, direction)


def _canonical(of: int, fields: bytes, width: int = 0) -> bytes:
    return number(1, of) + data(of, fields, width) if of else number(1, of) + fields


def _turned(source: Source, direction: Direction) -> bytes:
    """The type behind its field."""
    of = kind(source, direction)
    return frame(data(of or 1, body(source, of)) + number(1, of), rest(source, of))


def _twice(source: Source, direction: Direction) -> bytes:
    """One command behind another, in one frame."""
    first, last = kind(source, direction), kind(source, direction)
    both = _canonical(first, body(source, first)) + _canonical(last, body(source, last))
    return frame(both, rest(source, last))


def _later(source: Source, direction: Direction) -> bytes:
    """With fields of later versions, and numbers written at length."""
    of = kind(source, direction)
    fields = body(source, of) + number(15 + source.below(90), source.number())
    return frame(_canonical(of, fields, source.below(6)), rest(source, of))


def _doubled(source: Source, direction: Direction) -> bytes:
    """Fields that are there twice: the last counts."""
    of = kind(source, direction)
    fields = body(source, of) + b"".join(_field(source) for _ in range(source.below(4)))
    return frame(_canonical(of, fields), rest(source, of))


def _garbled(source: Source, direction: Direction) -> bytes:
    """A text that is none, in a field by number."""
    of = kind(source, direction)
    fields = body(source, of) + data(1 + source.below(12), FLAWED)
    return frame(_canonical(of, fields), rest(source, of))


def _damaged(source: Source, direction: Direction) -> bytes:
    """Some bytes are others. The total size stays."""
    content = bytearray(true_frame(source, direction))
    for _ in range(1 + source.below(4)):
        content[4 + source.below(len(content) - 4)] = source.byte()
    return bytes(content)


def _lying(source: Source, direction: Direction) -> bytes:
    """Sizes that contradict what is there."""
    content = bytearray(true_frame(source, direction))
    at = 4 * source.below(2)
    (size,) = struct.unpack_from(">I", content, at)
    wrong = source.pick((size + 1, size - 1, 0, 1, 0xFFFFFFFF, 1 << 20, 4, 8 * size))
    struct.pack_into(">I", content, at, wrong & 0xFFFFFFFF)
    return bytes(content)


def _noise(source: Source, _direction: Direction) -> bytes:
    return source.take(1 + source.below(60))


_FLAWS: tuple[Callable[[Source, Direction], bytes], ...] = (
    _turned,
    _twice,
    _later,
    _doubled,
    _garbled,
    _damaged,
    _damaged,
    _lying,
    _noise,
)
