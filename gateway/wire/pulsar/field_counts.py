"""Bounds the number of fields of a protobuf message before it is decoded.

Decoding costs time and memory by the field, not by the byte: a message of empty repeated fields
takes 30 times its size. So a message of more than `CHECKED_FROM` bytes is walked first, field by
field, and refused at the first field beyond the bound. Texts and bytes, which make up most of large
messages, are skipped in one step.

The walk is Python, where a field costs 20 times as much as in the decoder. The bound on fields
bounds the walk's time too. Smaller messages are not walked at all. Each byte of a tag or a length
beyond the second counts as a field, because it makes a field more expensive to walk.
"""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.errors import PeerError
from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import MessageMetadata
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.metadata import read_varint
from gateway.wire.slices import Slices, finished

MOST_FIELDS = 5_000
"""Fields of one message, at all levels, and of a list of topics in one slice. Walking them takes 2
ms, decoding 0.1 ms. Real commands have some dozens; the largest are schemas with a property for
each column, and acknowledgements and redeliveries of a thousand messages, which pass without being
decoded."""

CHECKED_FROM = 64 * 1024
"""Bytes of the largest message that needs no walk: the most fields that it can hold, 32,768 empty
ones, are decoded and encoded again in 2 ms."""


def check_command(frame: bytes, begin: int, end: int, kind: int, most: int) -> None:
    """Raise `PeerError` if a command has more than `most` fields, or a field that reaches beyond
    its message. The command's fields are at `frame[begin:end]`. `kind`: the command's type.

    Commands of up to `CHECKED_FROM` bytes are not checked.
    """
    if end - begin > CHECKED_FROM:
        finished(check_long(frame, begin, end, kind, most))


def check_long(frame: bytes, begin: int, end: int, kind: int, most: int) -> Slices[None]:
    """Do the same as `check_command` in slices, whatever the size of the command."""
    return _check(frame, begin, end, _COMMANDS.get(kind, _NO_MESSAGES), most, "a command")


def check_metadata(metadata: bytes, most: int) -> None:
    """Raise `PeerError` if a message's metadata has more than `most` fields, or a field that
    reaches beyond its message. Metadata of up to `CHECKED_FROM` bytes is not checked."""
    if len(metadata) > CHECKED_FROM:
        finished(_check(metadata, 0, len(metadata), _METADATA, most, "metadata"))


class _Inner(dict[int, "_Inner"]):
    """The nested messages of a message type, by field number.

    Fields of repeated numbers are listed too, as `_NUMBERS`, because protobuf reads any quantity of
    numbers from one field.
    """


_NUMBERS: Final = _Inner()
_NO_MESSAGES: Final = _Inner()

_VARINT_END = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]").match
"""Finds the end of a varint, as fast for ten bytes as for two."""


def _check(  # noqa: C901 - flat, as everything that is done for each field
    data: bytes, begin: int, end: int, inner: _Inner, most: int, what: str
) -> Slices[None]:
    waiting = [(begin, end, inner)]
    left = most
    pause = max(0, most - MOST_FIELDS)  # yield when fewer fields are left
    try:
        while waiting:
            at, here, inner = waiting.pop()
            while at < here:
                left -= 1
                if left < pause:
                    if left < 0:
                        raise PeerError(f"{what} of more than {most} fields")
                    yield
                    pause = max(0, left - MOST_FIELDS)
                tag = data[at]
                at += 1
                if tag > 127:
                    if (second := data[at]) < 128:
                        tag += (second - 1) << 7
                        at += 1
                    else:
                        tag, at, more = _number(data, at - 1, what)
                        left -= more
                wire = tag & 7
                if wire == 2:
                    length = data[at]
                    at += 1
                    if length > 127:
                        if (second := data[at]) < 128:
                            length += (second - 1) << 7
                            at += 1
                        else:
                            length, at, more = _number(data, at - 1, what)
                            left -= more
                    if length and (nested := inner.get(tag >> 3)) is not None:
                        if nested is _NUMBERS:
                            left -= length
                        else:
                            waiting.append((at, min(at + length, end), nested))
                    at += length
                elif wire == 0:
                    if data[at] > 127:
                        match = _VARINT_END(data, at)
                        if match is None:
                            raise PeerError(f"{what} with a number that is too long")
                        at = match.end()
                    else:
                        at += 1
                elif wire in _FIXED:
                    at += _FIXED[wire]
                else:
                    raise PeerError(f"{what} with a field of a kind that Pulsar does not use")
            if left < 0:
                raise PeerError(f"{what} of more than {most} fields")
            if at > here:
                raise PeerError(f"{what} with a field that reaches beyond it")
    except IndexError:
        raise PeerError(f"{what} that is cut") from None


def _number(data: bytes, at: int, what: str) -> tuple[int, int, int]:
    """Return a long number, the offset behind it, and the fields that it counts as."""
    number, behind = read_varint(data, at, len(data))
    if not at < behind <= len(data):
        raise PeerError(f"{what} with a number that is cut or too long")
    return number, behind, behind - at - 2


_FIXED = {1: 8, 5: 4}
"""Bytes of a field's content, by its wire type."""

_known: dict[str, _Inner] = {}


def _within(message: Descriptor) -> _Inner:
    """Return the nested messages of a message type, which may contain itself."""
    nested = _known.get(message.full_name)
    if nested is None:
        nested = _known[message.full_name] = _Inner()
        for field in message.fields:
            if field.message_type is not None:
                nested[field.number] = _within(field.message_type)
            elif _is_repeated_number(field):
                nested[field.number] = _NUMBERS
    return nested


def _is_repeated_number(field: Any) -> bool:
    texts = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
    return bool(field.is_repeated) and field.type not in texts


_COMMANDS = _within(BaseCommand.DESCRIPTOR)
_METADATA = _within(MessageMetadata.DESCRIPTOR)
