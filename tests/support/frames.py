"""Whole Pulsar frames with correct checksums.

Frames are built by protobuf, as peers do (`send`, `message`, `receipt`, `simple`), or field by
field (`varint`, `number`, `data`, `command`, `frame`) for false encodings and for those that no
peer writes but any decoder understands. This code is independent of the gateway's own, so that it
cannot share its mistakes.
"""

from __future__ import annotations

import struct
from typing import Any

import crc32c

from gateway.wire.pulsar._proto.pulsar_metadata_pb2 import BrokerEntryMetadata, MessageMetadata
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand

TIME = 1_735_689_600_000
"""A recent publish time: six bytes as a varint."""

LARGEST = (1 << 64) - 1
"""The largest id."""


# -- field by field ----------------------------------------------------------------------------


def varint(value: int, width: int = 0) -> bytes:
    """Return a varint, padded to at least `width` bytes."""
    out = bytearray()
    while value > 127 or len(out) + 1 < width:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def number(field: int, value: int, width: int = 0, tag_width: int = 0) -> bytes:
    """Return a field with a number."""
    return varint(field << 3, tag_width) + varint(value, width)


def data(field: int, content: bytes, width: int = 0, tag_width: int = 0) -> bytes:
    """Return a field of bytes, a text or a message; `width` is that of its length."""
    return varint(field << 3 | 2, tag_width) + varint(len(content), width) + content


def fixed(field: int, content: bytes) -> bytes:
    """Return a field of four or eight bytes."""
    return varint(field << 3 | {4: 5, 8: 1}[len(content)]) + content


def group(field: int, content: bytes = b"") -> bytes:
    """Return a group, a field kind that protobuf has deprecated."""
    return varint(field << 3 | 3) + content + varint(field << 3 | 4)


def command(kind: int, body: bytes, width: int = 0) -> bytes:
    """Return a command with its type first. In Pulsar a command's field has the number of its
    type."""
    return number(1, kind) + data(kind, body, width)


def frame(
    of: bytes, tail: bytes = b"", *, size: int | None = None, total: int | None = None
) -> bytes:
    """Return a command's frame; `size` and `total` replace the true sizes."""
    size = len(of) if size is None else size
    total = len(of) + len(tail) + 4 if total is None else total
    return struct.pack(">II", total, size) + of + tail


def tail(
    metadata: bytes,
    payload: bytes = b"",
    *,
    checksum: bool = True,
    entry: bytes | None = None,
    length: int | None = None,
) -> bytes:
    """Return what follows the command in SEND and MESSAGE.

    `entry`: broker entry metadata in front of it; `length`: a false length of the metadata.
    """
    length = len(metadata) if length is None else length
    out = struct.pack(">I", length) + metadata + payload
    if checksum:
        out = struct.pack(">HI", 0x0E01, crc32c.crc32c(out)) + out
    if entry is not None:
        out = struct.pack(">HI", 0x0E02, len(entry)) + entry + out
    return out


# -- by protobuf -------------------------------------------------------------------------------


def metadata_of(sequence_id: int = 0, **fields: Any) -> bytes:
    """Return the metadata of a message as producers write it."""
    written: dict[str, Any] = {"producer_name": "standalone-0-7", "publish_time": TIME} | fields
    return MessageMetadata(sequence_id=sequence_id, **written).SerializeToString()


def entry_of(**fields: int) -> bytes:
    """Return the metadata that a broker adds to an entry."""
    return BrokerEntryMetadata(**fields).SerializeToString()


def simple(kind: int, **fields: Any) -> bytes:
    """Return a frame of a command without a payload."""
    return _frame(kind, fields)


def send(producer_id: int, sequence_id: int, payload: bytes = b"payload", **fields: Any) -> bytes:
    """Return a SEND of one message, or of a batch if `num_messages` is given."""
    about = {"num_messages_in_batch": fields["num_messages"]} if "num_messages" in fields else {}
    rest = tail(metadata_of(sequence_id, **about), payload)
    return _frame(6, {"producer_id": producer_id, "sequence_id": sequence_id} | fields, rest)


def message(consumer_id: int, of: bytes | None = None, **fields: Any) -> bytes:
    """Return a MESSAGE; `of` is what follows its command, by default one message."""
    rest = tail(metadata_of(), b"payload") if of is None else of
    id = {"ledgerId": 123_456, "entryId": 7, "partition": -1}
    return _frame(9, {"consumer_id": consumer_id, "message_id": id} | fields, rest)


def receipt(producer_id: int, sequence_id: int = 0, **fields: Any) -> bytes:
    """Return a SEND_RECEIPT."""
    fields = {"message_id": {"ledgerId": 123_456, "entryId": 7}} | fields
    return _frame(7, {"producer_id": producer_id, "sequence_id": sequence_id} | fields)


def _frame(kind: int, fields: dict[str, Any], rest: bytes = b"") -> bytes:
    name = BaseCommand.DESCRIPTOR.fields_by_number[kind].name
    body: dict[str, Any] = {name: fields}
    whole = BaseCommand(type=BaseCommand.Type.ValueType(kind), **body)
    return frame(whole.SerializePartialToString(), rest)
