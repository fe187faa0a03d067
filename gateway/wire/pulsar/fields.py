"""Bounds how many fields a command has before it is decoded.

Decoding costs time and memory by the field, not by the byte: a message of empty repeated fields
takes 30 times its size. So a command beyond `CHECKED_FROM` bytes is walked first, field by field,
and refused at the first field too many. Texts and bytes, which make large commands large, are
skipped in one step.
"""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.errors import PeerError
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.metadata import read_varint

MOST_FIELDS = 5_000
"""Fields of one command, at all levels. Walking and decoding them takes 2 to 4 ms. Real commands
have some dozens; the largest are acknowledgements and redeliveries of a thousand messages, which
pass without being decoded, and schemas with a property for each column."""

CHECKED_FROM = 16 * 1024
"""Bytes of a command up to which no walk is needed: the most fields that it can hold, 8,192 empty
ones, are decoded in 0.4 ms."""


def check_fields(frame: bytes, begin: int, end: int, kind: int, most: int) -> None:
    """Walk the fields of a command of this type, at `frame[begin:end]`, and those within them.

    Raises `PeerError` beyond `most` fields, and where a field reaches beyond its message.
    """
    of_command = BaseCommand.DESCRIPTOR.fields_by_number.get(kind)
    waiting = [(begin, end, _messages(None if of_command is None else of_command.message_type))]
    count = 0
    while waiting:
        at, here, messages = waiting.pop()
        while at < here:
            count += 1
            if count > most:
                raise PeerError(f"a command of more than {most} fields")
            tag, at = _number(frame, at, here)
            wire = tag & 7
            if wire == 2:
                length, at = _number(frame, at, here)
                if tag >> 3 in messages:
                    waiting.append((at, at + length, messages[tag >> 3]))
                at += length
            elif wire == 0:
                _, at = _number(frame, at, here)
            elif wire in _FIXED:
                at += _FIXED[wire]
            else:
                raise PeerError("a command with a field of a kind that Pulsar does not use")
        if at > here:
            raise PeerError("a command with a field that reaches beyond it")


def _number(frame: bytes, at: int, end: int) -> tuple[int, int]:
    number, behind = read_varint(frame, at, end)
    if not at < behind <= end:
        raise PeerError("a command with a number that is cut or too long")
    return number, behind


_FIXED = {1: 8, 5: 4}
"""Bytes of a field, by its wire type."""

_Messages = dict[int, "_Messages"]
"""The fields of a message that are messages, by their numbers, and so on."""


@cache
def _messages(message: Descriptor | None) -> _Messages:
    if message is None:
        return {}
    return {
        field.number: _messages(field.message_type)
        for field in message.fields
        if field.type == FieldDescriptor.TYPE_MESSAGE
    }
