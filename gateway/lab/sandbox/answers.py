"""Frames that a broker sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.lab.sandbox.log import Position
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, MessageIdData, ServerError
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.frames import HEAD, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = 64
_WRAP = 1 << _WORD

FIELDS = {
    number: field
    for number, field in BaseCommand.DESCRIPTOR.fields_by_number.items()
    if field.message_type is not None
}
"""The field of BaseCommand for each kind of command, by number."""


class ErrorReply(NamedTuple):
    """An error code and a text, with which a broker refuses a request."""

    error: ServerError.ValueType
    text: str


INVALID_NAME = ErrorReply(ServerError.InvalidTopicName, "invalid topic name")


def frame(kind: Kind, /, **fields: Any) -> bytes:
    """Return the frame of a command without payload. `fields`: the fields of the command's
    message."""
    body: dict[str, Any] = {FIELDS[kind].name: fields}
    return encode(BaseCommand(type=BaseCommand.Type.ValueType(kind), **body))


def success(request_id: int) -> bytes:
    return frame(Kind.SUCCESS, request_id=request_id)


def error(request_id: int, refusal: ErrorReply) -> bytes:
    return frame(Kind.ERROR, request_id=request_id, error=refusal.error, message=refusal.text)


def send_receipt(producer_id: int, sequence_id: int, highest: int, position: Position) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND_RECEIPT)
    receipt = command.send_receipt
    receipt.producer_id = producer_id
    receipt.sequence_id = sequence_id
    receipt.highest_sequence_id = highest
    receipt.message_id.ledgerId, receipt.message_id.entryId = position
    return encode(command)


class Delivery(NamedTuple):
    """The fields of a MESSAGE. `ack_set`: a bit for each message of a batch, set if the message is
    not acknowledged."""

    consumer_id: int
    position: Position
    partition: int
    redelivered: int
    ack_set: int | None
    epoch: int | None


def message(delivery: Delivery, content: bytes) -> bytes:
    """Return the frame of a MESSAGE. `content`: checksum, metadata and payload of the entry; they
    are sent unchanged."""
    command = BaseCommand(type=BaseCommand.MESSAGE)
    about = command.message
    about.consumer_id = delivery.consumer_id
    about.message_id.ledgerId, about.message_id.entryId = delivery.position
    about.message_id.partition = delivery.partition
    about.redelivery_count = delivery.redelivered
    if delivery.ack_set is not None:
        about.ack_set.extend(words(delivery.ack_set))
    if delivery.epoch is not None:
        about.consumer_epoch = delivery.epoch
    body = command.SerializeToString()
    return HEAD.pack(len(body) + len(content) + 4, len(body)) + body + content


# -- numbers of the protocol -------------------------------------------------------------------


def words(bits: int) -> list[int]:
    """Return a bit set as signed 64-bit numbers, the lowest bits first, as Java's BitSet does."""
    numbers = []
    while bits:
        numbers.append(_signed(bits % _WRAP))
        bits >>= _WORD
    return numbers


def bits(words: Sequence[int]) -> int:
    """Return the bit set in a list of signed 64-bit numbers, the lowest bits first."""
    return sum((word % _WRAP) << (_WORD * index) for index, word in enumerate(words))


def position(id: MessageIdData) -> Position:
    """Return the position that a message id states. The id *earliest* gives -1, -1, and *latest* a
    position behind all entries."""
    return Position(_signed(id.ledgerId), _signed(id.entryId))


def position_fields(position: Position) -> dict[str, int]:
    """Return the fields of a MessageIdData that states this position."""
    return {"ledgerId": position.ledger % _WRAP, "entryId": position.entry % _WRAP}


def _signed(number: int) -> int:
    return number - _WRAP if number >= _WRAP >> 1 else number
