"""The largest and costliest frames of each command that the default bounds allow.

They are made from the descriptor of each command, so new commands are covered too. A command can be
costly in different ways: a long text, as many fields as are allowed, very small or filling the
command, nested fields, repeated numbers in one field, unknown fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.wire.contract import Direction
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.field_counts import CHECKED_FROM
from gateway.wire.pulsar.frames import COMMAND_BOUND, WITH_PAYLOAD, Kind
from tests.oracle.mutations import descriptor_of
from tests.playbooks.frames import TOPIC, number_field, raw, varint
from tests.support.commands import COUNTED, LIMITS, STOPS
from tests.support.frames import data

BOUNDS = Bounds()

UNKNOWN = 127
"""A command that no version knows."""

KINDS: tuple[int, ...] = (*Kind, UNKNOWN)

FROM_BROKERS = frozenset(
    {
        *(kind for kind in Kind if kind.name.endswith(("_RESPONSE", "_SUCCESS", "_UPDATE"))),
        *(Kind.CONNECTED, Kind.SEND_RECEIPT, Kind.SEND_ERROR, Kind.MESSAGE, Kind.SUCCESS),
        *(Kind.ERROR, Kind.REACHED_END_OF_TOPIC, Kind.ACTIVE_CONSUMER_CHANGE),
        *(Kind.AUTH_CHALLENGE, Kind.TOPIC_MIGRATED),
    }
) - {Kind.AUTH_RESPONSE}
FROM_BOTH = frozenset({Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER, Kind.PING, Kind.PONG, UNKNOWN})

HANDSHAKE = 64 * 1024
"""`limits.handshake_frame`."""

MARGIN = 64
"""Room for bytes and fields around the large part."""

_DEEPEST = 3
"""Depth of nested messages to enlarge. `_nested` covers deeper ones."""


class Costly(NamedTuple):
    """A frame, and what is costly about it."""

    what: str
    frame: bytes


def directions(kind: int) -> tuple[Direction, ...]:
    """Return the directions of a command."""
    if kind in FROM_BOTH:
        return tuple(Direction)
    return (Direction.TO_CLIENT if kind in FROM_BROKERS else Direction.TO_BROKER,)


def largest_command(kind: int, direction: Direction) -> int:
    """Return the most bytes that the gateway accepts of such a command."""
    if kind in (Kind.CONNECT, Kind.CONNECTED):
        return HANDSHAKE
    if kind in (Kind.MESSAGE, Kind.SEND_RECEIPT):
        return COMMAND_BOUND
    if direction is Direction.TO_BROKER or is_read(kind, direction):
        return BOUNDS.command
    return BOUNDS.collected  # a broker's passing frames may be larger, and cost nothing


def costly_frames(kind: int, direction: Direction) -> Iterator[Costly]:
    """Yield the frames of a command that could be its costliest."""
    size = largest_command(kind, direction) - MARGIN
    for what, body in _bodies(kind, size, is_read=is_read(kind, direction)):
        yield Costly(what, raw(kind, body))
    if kind in WITH_PAYLOAD:
        begin = required(descriptor_of(kind))
        for what, metadata in _metadata(BOUNDS.collected - CHECKED_FROM):
            tail = b"\x0e\x01" + bytes(4) + len(metadata).to_bytes(4) + metadata
            yield Costly(f"metadata: {what}", raw(kind, begin, tail))


def is_read(kind: int, direction: Direction) -> bool:
    """Return True if some listener reads such a command; others pass it unread."""
    if kind in (Kind.CONNECT, Kind.CONNECTED, UNKNOWN):
        return True
    return kind in STOPS[direction] | LIMITS[direction] | COUNTED[direction]


def _bodies(kind: int, size: int, *, is_read: bool) -> Iterator[tuple[str, bytes]]:
    message = descriptor_of(kind) if is_read else None
    begin = required(descriptor_of(kind)) + _REST.get(kind, b"")
    yield "", begin
    yield "its bytes", begin + filled(15, size - len(begin))
    for what, content in (*_anonymous(size), *(_places(message, size) if message else ())):
        yield what, begin + content
    if kind == Kind.SCALABLE_TOPIC_UPDATE:
        yield "brokers", begin + _brokers(size, 2, 3, (2, 3), b"\x08\x01")
    if kind == Kind.WATCH_TC_ASSIGNMENTS_UPDATE:
        yield "brokers", begin + _brokers(size, 2, 2, (2, 3), b"\x08\x01")


def _metadata(size: int) -> Iterator[tuple[str, bytes]]:
    begin = required(MessageMetadata.DESCRIPTOR)
    for what, content in (*_anonymous(size), *_places(MessageMetadata.DESCRIPTOR, size)):
        yield what, begin + content


_CONNECT_ANSWER = number_field(3, 1)  # LOOKUP_RESPONSE: Connect

_REST: dict[int, bytes] = {Kind.LOOKUP_RESPONSE: _CONNECT_ANSWER}
"""Fields without which a command has little meaning."""

# -- fields ------------------------------------------------------------------------------------


def filled(number: int, size: int, pattern: bytes = b"x") -> bytes:
    """Return a field of `size` bytes at most."""
    room = size - len(varint(number << 3 | 2)) - len(varint(size))
    return data(number, (pattern * (room // len(pattern) + 1))[: max(0, room)])


@cache
def required(message: Descriptor | None) -> bytes:
    """Return the fields that a message requires, with ids of 1 and topic names."""
    if message is None:
        return b""
    return b"".join(_least(field) for field in message.fields if field.is_required)


def _least(field: FieldDescriptor) -> bytes:
    if field.message_type is not None:
        return data(field.number, required(field.message_type))
    if field.type in _TEXTS:
        return data(field.number, TOPIC.encode() if field.name == "topic" else b"t")
    return number_field(field.number, 1)


_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def _anonymous(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield fields that no version knows."""
    small = min(size, CHECKED_FROM - 512)
    most = BOUNDS.fields - MARGIN
    yield "unknown numbers", number_field(15, 1) * (small // 2)
    yield "empty unknown fields", data(15, b"") * (small // 2)
    yield "long unknown numbers", (b"\x78" + b"\xff" * 9 + b"\x01") * min(most, size // 11)
    yield "large unknown fields", _several(size, most, 100)
    yield "unknown groups", (b"\x7b" * 90 + b"\x7c" * 90) * (small // 180)


def _several(size: int, number: int, field: int) -> bytes:
    each = size // number
    return filled(field, each) * number if each > 4 else data(field, b"") * (size // 3)


def _places(message: Descriptor, size: int, depth: int = _DEEPEST) -> Iterator[tuple[str, bytes]]:
    """Yield each field of a message enlarged, and the fields within it."""
    for field in message.fields:
        for what, content in _field(field, size):
            yield f"{what} {field.name}", content
        if field.message_type is not None and depth:
            begin = required(field.message_type)
            for what, content in _places(field.message_type, size - 16 - len(begin), depth - 1):
                yield f"{what} in {field.name}", data(field.number, begin + content)
            if field.message_type is message:
                yield f"nested {field.name}", _nested(field, size)


def _nested(field: FieldDescriptor, size: int) -> bytes:
    """Return a field nested as deeply as protobuf reads, repeated to the full size."""
    begin, content = required(field.message_type), b""
    for _ in range(95):
        content = data(field.number, begin + content)
    return content * max(1, min(size, CHECKED_FROM - 512) // len(content))


def _field(field: FieldDescriptor, size: int) -> Iterator[tuple[str, bytes]]:
    number, small = field.number, min(size, CHECKED_FROM - 512)
    most = BOUNDS.fields - MARGIN
    if field.type in _TEXTS:
        for what, pattern in _PATTERNS.items():
            yield what, filled(number, size, pattern)
        long = BOUNDS.names - 8
        yield "the longest name as", filled(number, long, b"persistent://t/n/" + b"a-.1:" * 500)
    if not field.is_repeated:
        if field.message_type is not None:
            begin = data(number, required(field.message_type))
            yield "again and again", begin * (small // len(begin))
        return
    inner = required(field.message_type)
    if field.message_type is None and field.type not in _TEXTS:
        yield "packed", data(number, b"\x01" * (small - 8))
        yield "packed and large", data(number, (b"\xff" * 9 + b"\x01") * min(most // 10, small))
        yield "many", number_field(number, 1) * (small // len(number_field(number, 1)))
        return
    least = data(number, inner)
    yield "many", least * (small // len(least))
    count = most // (1 + inner.count(b"t") + 2) if inner else most
    rest = filled(15, max(4, size // count - len(least) - 8))
    content = data(number, inner + rest) if field.message_type else filled(number, size // count)
    yield "many large", content * count


_PATTERNS = {
    "a long": b"x",
    "dots in": b"a.b-1:2/--3.4.5.6-:a",
    "addresses in": b"broker-17.internal:6650 ",
    "letters of 2 and 4 bytes in": "é\U0001f600".encode(),
    "no UTF-8 in": b"\xff\xfe",
}


def _brokers(size: int, outer: int, each: int, urls: tuple[int, int], begin: bytes) -> bytes:
    """Return as many different broker addresses as fit."""
    content = bytearray()
    for number in range(BOUNDS.fields):
        url = f"pulsar://broker-{number}.internal:6650".encode()
        entry = data(each, begin + b"".join(data(it, url) for it in urls))
        if len(content) + len(entry) > size or (number + 2) * 4 > BOUNDS.fields:
            break
        content += entry
    return data(outer, number_field(1, 1) + bytes(content))
